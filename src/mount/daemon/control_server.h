/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of the control socket. One thread accepts; each connection
 * has a thread that reads requests and runs commands. Only the daemon's user,
 * root and, if given, members of the group get access. This is enforced by the
 * modes of the socket and its directory, and by the peer's credentials.
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

/*
 * A command runs on its connection's thread. It sends any number of progress
 * lines and then one with "ok"; it borrows the request.
 */
struct ctl_command {
	const char *name;
	void (*run)(void *arg, struct ctl_conn *conn, const json_t *request);
	void *arg;
};

/*
 * Create the socket and start serving. `commands` ends with an element whose
 * name is NULL, and must outlive the server. `group` may be NULL. `patience_ms`
 * limits the time from the first byte of a line to its end, and how long to
 * wait for a peer that does not read an answer. On failure returns -errno and
 * leaves nothing behind.
 */
int ctl_server_start(struct ctl_server **out, const char *mountpoint,
	const char *group, const struct ctl_command *commands,
	unsigned patience_ms, struct error *err);

/* The absolute path of the socket; valid until ctl_server_stop(). */
const char *ctl_server_path(const struct ctl_server *server);

/* Remove the socket, wake all connections (ctl_gone() becomes true), wait for
 * their commands to return, and close them. NULL is allowed. */
void ctl_server_stop(struct ctl_server *server);

/* Send one line, and take ownership of it. One thread at a time. Returns 0,
 * -EPIPE if the peer is gone, or -ENOMEM, also if the line is NULL. */
int ctl_send(struct ctl_conn *conn, json_t *line);

/*
 * Send the last line of a successful request from ready-made text: `len` bytes
 * of JSON without a newline, which is written to text[len]. Returns as
 * ctl_send().
 */
int ctl_send_text(struct ctl_conn *conn, char *text, size_t len);

/* Send the last line of a request that failed; returns as ctl_send(). */
int ctl_fail(struct ctl_conn *conn, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Attach an object to the connection. release() is called for it on the
 * connection's thread when the connection ends, or at once when another object
 * (or NULL) replaces it.
 */
void ctl_own(struct ctl_conn *conn, void *owned, void (*release)(void *owned));
void *ctl_owned(struct ctl_conn *conn);

/*
 * The process at the other end; 0 if unknown, for example in another container.
 */
pid_t ctl_peer(const struct ctl_conn *conn);

/* Is it the daemon's user or root, and not just a member of the group? */
bool ctl_peer_owns(const struct ctl_conn *conn);

/* Has the peer hung up, or is the server stopping? Costs one system call. */
bool ctl_gone(struct ctl_conn *conn);

#endif
