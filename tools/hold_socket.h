/* SPDX-License-Identifier: MIT */
/* The socket at which refrain-hold hears daemons: at a path, or in the abstract
 * name space. One thread. */
#ifndef TOOLS_HOLD_SOCKET_H
#define TOOLS_HOLD_SOCKET_H

#include <sys/types.h>

#define HOLD_ADDRESS_BYTES 64

struct hold_socket {
	int fd;
	const char *path;		  /* NULL: it has none */
	char address[HOLD_ADDRESS_BYTES]; /* for NOTIFY_SOCKET; "" with a path
					   */
	dev_t dev;			  /* of the path */
	ino_t ino;
};

/*
 * Listen. A socket that a killed holder of this user has left at the path is
 * removed, and nothing else: -EADDRINUSE, also if a process listens there.
 */
int hold_socket_open(struct hold_socket *s, const char *path);

/* Remove the path, unless it is something else by now. */
void hold_socket_remove(const struct hold_socket *s);

#endif
