/* SPDX-License-Identifier: MIT */
/* Functions for Unix sockets that have a path: their directory, both ends of a
 * connection, and the process at the other end. The control socket
 * (control_place.h) and the sockets of shares use them; each of the two has its
 * own policy. No state; any thread. */
#ifndef CONTROL_UNIX_SOCKET_H
#define CONTROL_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#define SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* Returns XDG_RUNTIME_DIR if it is a directory of this user, otherwise NULL.
 * *st gets its attributes. */
const char *socket_runtime_dir(struct stat *st);

/* Create the directory with mode 0700, or check an existing one. Returns its
 * descriptor; -EPERM if it belongs to another user or its mode has one of the
 * `forbidden` bits; -ENOTDIR if it is a symbolic link, because in /tmp another
 * user may have made the link; or another -errno. */
int socket_open_dir(const char *dir, mode_t forbidden);

/* Connect to a path. `type` is SOCK_STREAM or SOCK_SEQPACKET. Returns a
 * non-blocking descriptor, or -errno. */
int socket_connect(const char *path, int type);

/* Create a non-blocking socket with this mode and group (-1: the usual group),
 * and listen at a path. Returns the descriptor, or -errno; even after a failure
 * the path may exist. */
int socket_listen(const char *path, int type, mode_t mode, gid_t group);

/* Get the process at the other end of a connection. Returns false if it is
 * unknown. */
bool socket_peer(int fd, struct ucred *peer);

/* Check the process at the other end. Returns 0, or -EPERM if it runs neither
 * as `owner` nor as root. */
int socket_check_peer(int fd, uid_t owner);

#endif
