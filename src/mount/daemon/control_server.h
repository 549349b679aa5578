/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of the control socket. One thread accepts connections. Each
 * connection has a thread that reads requests and runs commands. Only the
 * daemon's user, root and, if a group is given, its members have access. The
 * modes of the socket and its directory enforce this, and so does a check of
 * the peer's credentials.
 */
#ifndef DAEMON_CONTROL_SERVER_H
#define DAEMON_CONTROL_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"

struct ctl_server;
struct ctl_conn;

#define CTL_CONNECTIONS_MAX 64
#define CTL_REQUEST_MAX_BYTES ((size_t)1 << 20)

/* A command runs on the thread of its connection. It sends any number of
 * progress lines and then one line with "ok". The request belongs to the
 * caller. */
struct ctl_command {
	const char *name;
	void (*run)(void *arg, struct ctl_conn *conn, const json_t *request);
	void *arg;
};

/*
 * Create the socket, and start to serve. The last element of `commands` has no
 * name; the array must outlive the server. `group` may be NULL. `patience_ms`
 * limits both the time from the first byte of a line to its end, and the time
 * that the server waits until the peer reads an answer. Returns 0; or -errno,
 * with everything removed that was created.
 */
int ctl_server_start(struct ctl_server **out, const char *mountpoint,
	const char *group, const struct ctl_command *commands,
	unsigned patience_ms, struct error *err);

/* Returns the absolute path of the socket, which is valid until
 * ctl_server_stop(). */
const char *ctl_server_path(const struct ctl_server *server);

/* Remove the socket, wake all connections (ctl_gone() becomes true), wait for
 * their commands to return, and close them. NULL is allowed. */
void ctl_server_stop(struct ctl_server *server);

/* Send one line. This frees the line. Only one thread may send at a time.
 * Returns 0; -EPIPE if the peer is gone; or -ENOMEM, also if `line` is NULL. */
int ctl_send(struct ctl_conn *conn, json_t *line);

/* Send a line of progress as text: `len` bytes of JSON without a newline. The
 * newline is written to text[len]. Returns like ctl_send(). */
int ctl_send_line(struct ctl_conn *conn, char *text, size_t len);

/* Like ctl_send_line(), for the last line of a successful request. */
int ctl_send_text(struct ctl_conn *conn, char *text, size_t len);

/* Send the last line of a request that failed. Returns like ctl_send(). */
int ctl_fail(struct ctl_conn *conn, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Attach an object to the connection. release() is called for the object when
 * the connection ends, by its thread, or at once if another call of ctl_own()
 * attaches another object or NULL. */
void ctl_own(struct ctl_conn *conn, void *owned, void (*release)(void *owned));
void *ctl_owned(struct ctl_conn *conn);

/* Returns the process at the other end; 0: it is not known, for example because
 * it is in another container. */
pid_t ctl_peer(const struct ctl_conn *conn);

/* Is the peer the daemon's user or root, and not only a member of the group? */
bool ctl_peer_owns(const struct ctl_conn *conn);

/* Has the peer closed the connection, or is the server being stopped? Makes one
 * system call. */
bool ctl_gone(struct ctl_conn *conn);
/* The same, but wait for that for up to timeout_ms. */
bool ctl_gone_within(struct ctl_conn *conn, int timeout_ms);

#endif
