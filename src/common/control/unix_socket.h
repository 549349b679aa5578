/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets at a path: the directory they may be in, both ends of a
 * connection, and who is at the other one. The control socket
 * (control_place.h) and the sockets of shares are such places, each with its
 * own policy. No state; any thread.
 */
#ifndef CONTROL_UNIX_SOCKET_H
#define CONTROL_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#define SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* XDG_RUNTIME_DIR and its attributes if it is a directory of this user, else
 * NULL. */
const char *socket_runtime_dir(struct stat *st);

/*
 * Create the directory with mode 0700, or check that it belongs to this user
 * and has none of the `forbidden` bits in its mode: -EPERM. In /tmp its name
 * may be a link that somebody else made: -ENOTDIR. Otherwise -errno, or its
 * descriptor.
 */
int socket_open_dir(const char *dir, mode_t forbidden);

/* Connect to SOCK_STREAM or SOCK_SEQPACKET at a path. The descriptor, which is
 * non-blocking, or -errno. */
int socket_connect(const char *path, int type);

/* Listen with a non-blocking socket of that mode, and of that group unless it
 * is -1. The descriptor, or -errno; the path may exist then. */
int socket_listen(const char *path, int type, mode_t mode, gid_t group);

/* The process at the other end; false if it is not known. */
bool socket_peer(int fd, struct ucred *peer);

/* -EPERM if the process at the other end runs neither as `owner` nor as root.
 */
int socket_check_peer(int fd, uid_t owner);

#endif
