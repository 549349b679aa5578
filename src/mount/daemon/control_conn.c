/* SPDX-License-Identifier: MIT */
/*
 * Handles one connection: reads lines, checks that they are requests, runs
 * commands and sends answers, all on the thread of the connection. Limits the
 * length of a line, and the time between its first byte and its end.
 */
#include "mount/daemon/control_conn_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/control/unix_socket.h"
#include "mount/daemon/json_text.h"

struct ctl_conn *conn_new(int fd, int stop_fd, unsigned patience_ms,
	const struct ctl_command *commands)
{
	struct ctl_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	list_init(&conn->link);
	conn->fd = fd;
	conn->stop_fd = stop_fd;
	conn->patience_ms = patience_ms;
	conn->commands = commands;
	conn->lines.max_bytes = CTL_REQUEST_MAX_BYTES;
	return conn;
}

void conn_free(struct ctl_conn *conn)
{
	lines_release(&conn->lines);
	(void)close(conn->fd);
	free(conn);
}

int ctl_send_line(struct ctl_conn *conn, char *text, size_t len)
{
	text[len] = '\n';
	return line_send(
		conn->fd, text, len + 1, conn->stop_fd, (int)conn->patience_ms);
}

int ctl_send(struct ctl_conn *conn, json_t *line)
{
	CLEANUP_FREE char *text = NULL;

	if (!line)
		return -ENOMEM;
	if (json_object_get(line, "ok"))
		conn->answered = true;
	text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	if (!text)
		return -ENOMEM;
	/* The newline replaces the NUL */
	return ctl_send_line(conn, text, strlen(text));
}

int ctl_send_text(struct ctl_conn *conn, char *text, size_t len)
{
	conn->answered = true;
	return ctl_send_line(conn, text, len);
}

int ctl_fail(struct ctl_conn *conn, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long text is cut */
	va_end(ap);
	return ctl_send(conn,
		json_pack("{s:b,s:o}", "ok", 0, "error", ctl_text_new(text)));
}

void ctl_own(struct ctl_conn *conn, void *owned, void (*release)(void *owned))
{
	if (conn->owned)
		conn->release(conn->owned);
	conn->owned = owned;
	conn->release = release;
}

void *ctl_owned(struct ctl_conn *conn)
{
	return conn->owned;
}

bool ctl_peer_owns(const struct ctl_conn *conn)
{
	return socket_check_peer(conn->fd, geteuid()) == 0;
}

pid_t ctl_peer(const struct ctl_conn *conn)
{
	struct ucred peer;

	return socket_peer(conn->fd, &peer) ? peer.pid : 0;
}

bool ctl_gone_within(struct ctl_conn *conn, int timeout_ms)
{
	/* No events are requested: POLLHUP is reported even so when the peer is
	 * gone, but not when it has only stopped sending. */
	struct pollfd fds[2] = {
		{.fd = conn->fd},
		{.fd = conn->stop_fd, .events = POLLIN},
	};

	return poll(fds, 2, timeout_ms) > 0;
}

bool ctl_gone(struct ctl_conn *conn)
{
	return ctl_gone_within(conn, 0);
}

static const struct ctl_command *find_command(
	const struct ctl_command *c, const char *name)
{
	for (; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static int run_request(struct ctl_conn *conn, const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "cmd"));
	const struct ctl_command *command;

	if (!name)
		return ctl_fail(conn,
			"a request must be an object with a "
			"\"cmd\"");
	command = find_command(conn->commands, name);
	if (!command)
		return ctl_fail(conn, "unknown command '%.64s'", name);
	command->run(command->arg, conn, request);
	if (!conn->answered)
		return ctl_fail(conn, "'%s' did not finish", name);
	return 0;
}

/* Handle one request. Returns -EPIPE if the connection is unusable. */
static int conn_take_line(struct ctl_conn *conn, const char *line, size_t len)
{
	json_error_t why;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	int rc;

	conn->answered = false;
	if (!request)
		return ctl_fail(conn, "not a line of JSON: column %d: %s",
			why.column, why.text);
	rc = run_request(conn, request);
	json_decref(request);
	return rc;
}

/* Wait for bytes. Returns 1 if there are bytes or the peer is gone, 0 after
 * timeout_ms (-1: no limit), or -EPIPE when the server is being stopped. */
static int wait_readable(struct ctl_conn *conn, int timeout_ms)
{
	struct pollfd fds[2] = {
		{.fd = conn->fd, .events = POLLIN},
		{.fd = conn->stop_fd, .events = POLLIN},
	};
	int n;

	do
		n = poll(fds, 2, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0 || fds[1].revents)
		return -EPIPE;
	return n > 0;
}

/* Read more bytes of a line that began at begun_ns (0: no line has begun). */
static int read_more(struct ctl_conn *conn, uint64_t begun_ns)
{
	int timeout_ms = -1, rc;

	if (begun_ns) {
		uint64_t spent_ms = (clock_now_ns() - begun_ns) / NS_PER_MS;

		timeout_ms = spent_ms < conn->patience_ms
			? (int)(conn->patience_ms - spent_ms)
			: 0;
	}
	rc = wait_readable(conn, timeout_ms);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		(void)ctl_fail(conn, "the request was not complete in time");
		return -ETIMEDOUT;
	}
	rc = lines_fill(&conn->lines, conn->fd);
	if (rc == -EMSGSIZE)
		(void)ctl_fail(conn, "the request is longer than %zu bytes",
			CTL_REQUEST_MAX_BYTES);
	if (rc == -EAGAIN)
		return 0;
	return rc == 0 ? -EPIPE : rc;
}

static void serve_lines(struct ctl_conn *conn)
{
	uint64_t begun_ns = 0;
	char *line;
	size_t len;

	for (;;) {
		while (lines_next(&conn->lines, &line, &len)) {
			begun_ns = 0;
			if (conn_take_line(conn, line, len) < 0)
				return;
		}
		if (lines_partial(&conn->lines) && !begun_ns)
			begun_ns = clock_now_ns();
		if (read_more(conn, begun_ns) < 0)
			return;
	}
}

void conn_serve(struct ctl_conn *conn)
{
	serve_lines(conn);
	ctl_own(conn, NULL, NULL);
}
