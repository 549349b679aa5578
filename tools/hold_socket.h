/* SPDX-License-Identifier: MIT */
/* Opens the socket on which refrain-hold receives messages of daemons. The
 * socket has a path, or a name in the abstract name space. One thread. */
#ifndef TOOLS_HOLD_SOCKET_H
#define TOOLS_HOLD_SOCKET_H

#include <sys/types.h>

#define HOLD_ADDRESS_BYTES 64

struct hold_socket {
	int fd;
	const char *path; /* NULL: the socket is abstract */
	/* value of NOTIFY_SOCKET for the daemon; "" if the socket has a path */
	char address[HOLD_ADDRESS_BYTES];
	dev_t dev; /* device and inode of the socket's file */
	ino_t ino;
};

/* Bind the socket. A socket at the path on which a killed holder of this user
 * listened is replaced. Returns 0 or -errno: -EADDRINUSE if a process listens
 * at the path, or if the path is any other file. */
int hold_socket_open(struct hold_socket *s, const char *path);

/* Remove the socket's file, unless another file has replaced it. */
void hold_socket_remove(const struct hold_socket *s);

#endif
