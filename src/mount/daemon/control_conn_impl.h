/* SPDX-License-Identifier: MIT */
/* One connection to the control socket. */
#ifndef DAEMON_CONTROL_CONN_IMPL_H
#define DAEMON_CONTROL_CONN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/list.h"
#include "common/control/talk.h"
#include "mount/daemon/control_server.h"

struct ctl_conn {
	struct list link; /* in a list of the server; guarded by its lock */
	pthread_t thread; /* set once, before the thread can be joined */
	int fd;		  /* set once; non-blocking */
	int stop_fd; /* set once; readable when the server is being stopped */
	unsigned patience_ms;		    /* set once */
	const struct ctl_command *commands; /* set once */
	/* Used by the connection's thread */
	struct lines lines;
	/* The last line of the answer was sent. Used by the connection's thread
	 * or, while a command runs, by the thread that sends the lines of the
	 * answer. */
	bool answered;
	void *owned; /* used by the connection's thread; see ctl_own() */
	void (*release)(void *owned);
};

/* Create a connection, which owns the descriptor. Returns NULL if memory is
 * short. */
struct ctl_conn *conn_new(int fd, int stop_fd, unsigned patience_ms,
	const struct ctl_command *commands);

/* Serve requests until the peer closes the connection or the server stops. */
void conn_serve(struct ctl_conn *conn);

void conn_free(struct ctl_conn *conn);

#endif
