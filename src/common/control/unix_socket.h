/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets at a path: their directory, both ends of a connection, and the
 * process at the other end. The control socket (control_place.h) and the
 * sockets of shares use these functions, each with its own policy. No state;
 * any thread.
 */
#ifndef CONTROL_UNIX_SOCKET_H
#define CONTROL_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#define SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* XDG_RUNTIME_DIR, if it is a directory that this user owns, else NULL. Sets
 * *st. */
const char *socket_runtime_dir(struct stat *st);

/*
 * Create the directory with mode 0700, or check an existing one. Returns its
 * descriptor; -EPERM if it belongs to another user or its mode has one of the
 * `forbidden` bits; -ENOTDIR if its name is a link, which another user may have
 * made in /tmp; or another -errno.
 */
int socket_open_dir(const char *dir, mode_t forbidden);

/* Connect to SOCK_STREAM or SOCK_SEQPACKET at a path. Returns a non-blocking
 * descriptor, or -errno. */
int socket_connect(const char *path, int type);

/* Listen at a path with a non-blocking socket of this mode, and of this group
 * unless it is -1. Returns the descriptor, or -errno; the path may exist even
 * after a failure. */
int socket_listen(const char *path, int type, mode_t mode, gid_t group);

/* Get the process at the other end. Returns false if it is unknown. */
bool socket_peer(int fd, struct ucred *peer);

/* Returns -EPERM if the process at the other end runs neither as `owner` nor as
 * root. */
int socket_check_peer(int fd, uid_t owner);

#endif
