/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of the control socket: a server in a runtime directory of
 * its own whose commands do what tests need, and peers that behave well or
 * badly.
 */
#ifndef TESTS_CTL_FIXTURE_H
#define TESTS_CTL_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "analysis/fleet/client.h"
#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "suite.h"

static char dir[] = "/tmp/refrain-test-XXXXXX";
static struct ctl_server *server;
static struct error err;
static sem_t entered, left;

/* A time limit that is longer than any test takes. */
#define PATIENCE_MS 60000u

/* -- the commands of the test daemon -- */

static void cmd_echo(void *arg, struct ctl_conn *conn, const json_t *request)
{
	json_t *line = json_deep_copy(request);

	(void)arg;
	ck_assert_int_eq(json_object_set_new(line, "ok", json_true()), 0);
	(void)ctl_send(conn, line);
}

static void cmd_count(void *arg, struct ctl_conn *conn, const json_t *request)
{
	json_int_t n = json_integer_value(json_object_get(request, "n"));

	(void)arg;
	for (json_int_t i = 0; i < n; i++)
		(void)ctl_send(
			conn, json_pack("{s:b,s:I}", "progress", 1, "i", i));
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

static void cmd_fail(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	(void)ctl_fail(conn, "cannot read '%s'", "caf\xe9");
}

static void cmd_forget(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)conn;
	(void)request;
}

/* A command that runs until the connection is closed. */
static void cmd_wait(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	sem_post(&entered);
	while (!ctl_gone(conn))
		(void)poll(NULL, 0, 1);
	sem_post(&left);
}

/* A command that sends lines until the connection is closed. */
static void cmd_flood(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	while (ctl_send(conn, json_pack("{s:b}", "progress", 1)) == 0)
		;
	sem_post(&left);
}

static void owned_gone(void *owned)
{
	atomic_fetch_add((atomic_int *)owned, 1);
	sem_post(&left);
}

static atomic_int owned_ends[2];

/* A command that lets the connection own a resource. */
static void cmd_own(void *arg, struct ctl_conn *conn, const json_t *request)
{
	json_int_t n = json_integer_value(json_object_get(request, "n"));

	(void)arg;
	ctl_own(conn, n < 0 ? NULL : &owned_ends[n], owned_gone);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

static const struct ctl_command commands[] = {
	{"own", cmd_own, NULL},
	{"echo", cmd_echo, NULL},
	{"count", cmd_count, NULL},
	{"fail", cmd_fail, NULL},
	{"forget", cmd_forget, NULL},
	{"wait", cmd_wait, NULL},
	{"flood", cmd_flood, NULL},
	{NULL, NULL, NULL},
};

static inline void start_server(unsigned patience_ms)
{
	(void)umask(022);
	(void)snprintf(dir, sizeof(dir), "/tmp/refrain-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
	ck_assert_int_eq(sem_init(&left, 0, 0), 0);
	ck_assert_msg(ctl_server_start(&server, "/mnt/x", NULL, commands,
			      patience_ms, &err) == 0,
		"%s", err.msg);
}

static inline void setup(void)
{
	start_server(PATIENCE_MS);
}

static inline void teardown(void)
{
	char refrain[64];

	ctl_server_stop(server);
	(void)snprintf(refrain, sizeof(refrain), "%s/refrain", dir);
	(void)rmdir(refrain); /* fails only if the test has left files */
	ck_assert_int_eq(rmdir(dir), 0);
}

static inline struct ctl_client *client(void)
{
	struct ctl_client *c = NULL;

	ck_assert_msg(ctl_connect_path(&c, ctl_server_path(server), &err) == 0,
		"%s", err.msg);
	return c;
}

/* Open a connection without the client, to send requests that the client never
 * sends. */
static inline int raw(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s",
		ctl_server_path(server));
	ck_assert_int_eq(
		connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)),
		0);
	return fd;
}

static inline void put(int fd, const void *data, size_t len)
{
	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Read one line, with its newline, byte by byte. Returns its length, 0 at the
 * end. */
static inline size_t get_line(int fd, char *line, size_t room)
{
	size_t len = 0;

	while (len + 1 < room && read(fd, line + len, 1) == 1)
		if (line[len++] == '\n')
			break;
	line[len] = '\0';
	return len;
}

static inline void wait_sem(sem_t *sem)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	ck_assert_int_eq(sem_timedwait(sem, &until), 0);
}

static inline void expect_refusal(int fd)
{
	char line[2048];
	json_t *answer;

	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	answer = json_loads(line, 0, NULL);
	ck_assert_msg(answer != NULL, "%s", line);
	ck_assert(json_is_false(json_object_get(answer, "ok")));
	ck_assert(json_is_string(json_object_get(answer, "error")));
	json_decref(answer);
}

/* Check that the connection still answers. */
static inline void expect_echo(int fd, int n)
{
	char line[4096], request[64];
	int at = -1;

	(void)snprintf(request, sizeof(request),
		"{\"cmd\":\"echo\",\"mark\":%d}\n", n);
	put(fd, request, strlen(request));
	while (at != n) {
		json_t *answer;

		ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
		answer = json_loads(line, 0, NULL);
		if (json_object_get(answer, "mark"))
			at = (int)json_integer_value(
				json_object_get(answer, "mark"));
		json_decref(answer);
	}
}

#endif
