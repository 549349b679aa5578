/* SPDX-License-Identifier: MIT */
/* The socket at which refrain-hold receives messages of daemons: at a path, or
 * in the abstract name space. One thread. */
#ifndef TOOLS_HOLD_SOCKET_H
#define TOOLS_HOLD_SOCKET_H

#include <sys/types.h>

#define HOLD_ADDRESS_BYTES 64

struct hold_socket {
	int fd;
	const char *path; /* NULL: an abstract socket */
	/* value of NOTIFY_SOCKET; "" with a path */
	char address[HOLD_ADDRESS_BYTES];
	dev_t dev; /* device and inode of the path */
	ino_t ino;
};

/*
 * Listen. If a killed holder of this user has left a socket at the path, it is
 * removed. Returns -EADDRINUSE for any other file, and if a process listens
 * there.
 */
int hold_socket_open(struct hold_socket *s, const char *path);

/* Remove the path, unless another file has replaced the socket. */
void hold_socket_remove(const struct hold_socket *s);

#endif
