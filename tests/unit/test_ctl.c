/* SPDX-License-Identifier: MIT */
/* Tests of src/ctl: server and client in one process, and hostile peers. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <semaphore.h>
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

#include "base/cleanup.h"
#include "base/clock.h"
#include "ctl/ctl.h"

static char dir[] = "/tmp/refrain-test-XXXXXX";
static struct ctl_server *server;
static struct error err;
static sem_t entered, left;

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
		(void)ctl_send(conn,
			json_pack("{s:b,s:I}", "progress", 1, "i", i));
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

/* Runs until nobody wants its answer. */
static void cmd_wait(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	sem_post(&entered);
	while (!ctl_gone(conn))
		(void)poll(NULL, 0, 1);
	sem_post(&left);
}

/* Sends until it cannot. */
static void cmd_flood(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	while (ctl_send(conn, json_pack("{s:b}", "progress", 1)) == 0)
		;
	sem_post(&left);
}

static const struct ctl_command commands[] = {
	{"echo", cmd_echo},
	{"count", cmd_count},
	{"fail", cmd_fail},
	{"forget", cmd_forget},
	{"wait", cmd_wait},
	{"flood", cmd_flood},
	{NULL, NULL},
};

static void setup(void)
{
	(void)umask(022);
	(void)snprintf(dir, sizeof(dir), "/tmp/refrain-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
	ck_assert_int_eq(sem_init(&left, 0, 0), 0);
	ck_assert_msg(ctl_server_start(&server, "/mnt/x", NULL, commands, NULL,
			      &err) == 0,
		"%s", err.msg);
}

static void teardown(void)
{
	char refrain[64];

	ctl_server_stop(server);
	(void)snprintf(refrain, sizeof(refrain), "%s/refrain", dir);
	(void)rmdir(refrain); /* gone already unless a test left things */
	ck_assert_int_eq(rmdir(dir), 0);
}

static struct ctl_client *client(void)
{
	struct ctl_client *c = NULL;

	ck_assert_msg(ctl_connect_path(&c, ctl_server_path(server), &err) == 0,
		"%s", err.msg);
	return c;
}

/* A bare connection, for peers that do not behave. */
static int raw(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s",
		ctl_server_path(server));
	ck_assert_int_eq(
		connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit,
				 sizeof(limit)),
		0);
	return fd;
}

static void put(int fd, const void *data, size_t len)
{
	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* One line, newline included, read byte by byte; its length, 0 at the end. */
static size_t get_line(int fd, char *line, size_t room)
{
	size_t len = 0;

	while (len + 1 < room && read(fd, line + len, 1) == 1)
		if (line[len++] == '\n')
			break;
	line[len] = '\0';
	return len;
}

static void wait_sem(sem_t *sem)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	ck_assert_int_eq(sem_timedwait(sem, &until), 0);
}

/* -- requests -- */

static void count_line(void *arg, const json_t *line)
{
	json_int_t *next = arg;

	ck_assert(json_is_true(json_object_get(line, "progress")));
	ck_assert_int_eq(
		json_integer_value(json_object_get(line, "i")), (*next)++);
}

START_TEST(test_ctl_request_gets_its_progress_lines_and_then_its_reply)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;
	json_int_t next = 0;

	for (int i = 0; i < 2; i++) {
		next = 0;
		ck_assert_int_eq(ctl_request(c,
					 json_pack("{s:s,s:i}", "cmd", "count",
						 "n", 1000),
					 20, count_line, &next, &reply, &err),
			0);
		ck_assert_int_eq(next, 1000);
		json_decref(reply);
	}
	ctl_disconnect(c);
}
END_TEST

START_TEST(test_ctl_request_reports_the_daemons_error_in_its_words)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;

	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "fail"), 20,
				 NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ck_assert_str_eq(err.msg, "cannot read 'caf?'");
	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "nosuch"),
				 20, NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ck_assert_str_eq(err.msg, "there is no command 'nosuch'");
	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "forget"),
				 20, NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ctl_disconnect(c);
}
END_TEST

START_TEST(test_ctl_request_times_out_when_the_daemon_is_silent)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;

	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "wait"), 1,
				 NULL, NULL, &reply, &err),
		-ETIMEDOUT);
	ctl_disconnect(c);
	wait_sem(&left);
}
END_TEST

START_TEST(test_ctl_answers_a_peer_that_only_stopped_sending)
{
	static const char request[] = "{\"cmd\":\"count\",\"n\":1}\n";
	char line[256];
	int fd = raw();

	put(fd, request, strlen(request));
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	ck_assert_str_eq(line, "{\"ok\":true}\n");
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_command_learns_that_its_peer_hung_up)
{
	static const char request[] = "{\"cmd\":\"wait\"}\n";
	int fd = raw();

	put(fd, request, strlen(request));
	wait_sem(&entered);
	(void)close(fd);
	wait_sem(&left);
}
END_TEST

START_TEST(test_ctl_stop_wakes_commands_and_removes_the_socket)
{
	static const char request[] = "{\"cmd\":\"wait\"}\n";
	int fd = raw(), idle = raw();
	char path[128];

	put(fd, request, strlen(request));
	put(idle, "{", 1);
	wait_sem(&entered);
	(void)snprintf(path, sizeof(path), "%s", ctl_server_path(server));
	ctl_server_stop(server);
	server = NULL;
	wait_sem(&left);
	ck_assert_int_eq(access(path, F_OK), -1);
	(void)close(fd);
	(void)close(idle);
}
END_TEST

START_TEST(test_ctl_drops_a_peer_that_does_not_read)
{
	static const char request[] = "{\"cmd\":\"flood\"}\n";
	int fd;

	ctl_server_set_patience(server, 50);
	fd = raw();
	put(fd, request, strlen(request));
	wait_sem(&left);
	(void)close(fd);
}
END_TEST

/* -- hostile input -- */

static const struct {
	const char *data;
	size_t len;
} garbage[] = {
#define GARBAGE(text) {text, sizeof(text) - 1}
	GARBAGE(""),
	GARBAGE("\r"),
	GARBAGE("hello"),
	GARBAGE("{"),
	GARBAGE("{}"),
	GARBAGE("[]"),
	GARBAGE("null"),
	GARBAGE("\"status\""),
	GARBAGE("{\"cmd\":1}"),
	GARBAGE("{\"cmd\":null}"),
	GARBAGE("{\"cmd\":\"\"}"),
	GARBAGE("{\"cmd\":\"e\\u0000cho\"}"),
	GARBAGE("{\"cmd\":\"ec\0ho\"}"),
	GARBAGE("{\"cmd\":\"echo\"}\0"),
	GARBAGE("{\"cmd\":\"echo\",\"cmd\":\"count\"}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":123456789012345678901234567890}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":1e999999}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":-}"),
	GARBAGE("{\"cmd\":\"\xff\xfe\"}"),
	GARBAGE("\xff\xfe\xfd"),
	GARBAGE("{\"cmd\":\"%s%n%n%n\"}"),
	GARBAGE("{\"cmd\":\"echo\"} {\"cmd\":\"echo\"}"),
};

static void expect_refusal(int fd)
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

/* The connection still works. */
static void expect_echo(int fd, int n)
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

START_TEST(test_ctl_refuses_garbage_and_goes_on)
{
	int fd = raw();

	put(fd, garbage[_i].data, garbage[_i].len);
	put(fd, "\n", 1);
	expect_refusal(fd);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_deep_nesting)
{
	static char deep[500000];
	int fd = raw();

	memset(deep, '[', sizeof(deep));
	deep[sizeof(deep) - 1] = '\n';
	put(fd, deep, sizeof(deep));
	expect_refusal(fd);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_takes_a_request_of_the_largest_size)
{
	CLEANUP_FREE char *big = malloc(CTL_REQUEST_MAX_BYTES + 1);
	int fd = raw();

	ck_assert_ptr_nonnull(big);
	memset(big, ' ', CTL_REQUEST_MAX_BYTES);
	memcpy(big, "{\"cmd\":\"count\"}", 15);
	big[CTL_REQUEST_MAX_BYTES] = '\n';
	put(fd, big, CTL_REQUEST_MAX_BYTES + 1);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_a_longer_request_and_hangs_up)
{
	CLEANUP_FREE char *big = malloc(CTL_REQUEST_MAX_BYTES + 1);
	char line[256];
	int fd = raw();

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', CTL_REQUEST_MAX_BYTES + 1);
	put(fd, big, CTL_REQUEST_MAX_BYTES + 1);
	expect_refusal(fd);
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_hangs_up_when_the_rest_of_a_line_does_not_come)
{
	char line[256];
	int fd;

	ctl_server_set_patience(server, 50);
	fd = raw();
	put(fd, "{\"cmd\":", 7);
	expect_refusal(fd);
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Change, drop, double or insert bytes of a request that was good. */
static size_t mutate(char *to, const char *from)
{
	size_t len = strlen(from), changes = 1 + random_next() % 4;

	memcpy(to, from, len);
	while (changes--) {
		size_t at = len ? random_next() % len : 0;

		switch (random_next() % 4) {
		case 0:
			to[at] = (char)random_next();
			break;
		case 1:
			to[at] ^= (char)(1 << random_next() % 8);
			break;
		case 2:
			memmove(to + at + 1, to + at, len - at);
			len++;
			break;
		default:
			len = at;
		}
	}
	return len;
}

START_TEST(test_ctl_survives_ten_thousand_mutations)
{
	static const char *const good[] = {
		"{\"cmd\":\"echo\",\"paths\":[\"a\",{\"hex\":\"ff\"}]}",
		"{\"cmd\":\"count\",\"n\":3}",
		"{\"cmd\":\"fail\",\"deep\":[[[[[1.5e3,true,null]]]]]}",
		"{\"cmd\":\"\\u00e9\\ud83d\\ude00\"}",
	};
	char line[256];
	int fd = raw();

	for (int i = 0; i < 10000; i++) {
		size_t len = mutate(line, good[random_next() % 4]);

		/* A count of a billion would be answered, too. */
		if (memmem(line, len, "count", 5) && memmem(line, len, "\"n\":",
							   4) &&
			!memmem(line, len, "\"n\":3}", 6))
			continue;
		line[len] = '\n';
		put(fd, line, len + 1);
		if (i % 10 == 0)
			expect_echo(fd, i);
	}
	expect_echo(fd, 10000);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_the_65th_connection_until_one_closes)
{
	int fds[CTL_CONNECTIONS_MAX], fd;
	bool served = false;

	for (int i = 0; i < CTL_CONNECTIONS_MAX; i++) {
		fds[i] = raw();
		expect_echo(fds[i], i);
	}
	fd = raw();
	expect_refusal(fd);
	(void)close(fd);
	(void)close(fds[0]);
	while (!served) { /* its thread ends when it ends */
		struct ctl_client *c = client();
		json_t *reply = NULL;

		served = ctl_request(c, json_pack("{s:s}", "cmd", "echo"), 20,
				 NULL, NULL, &reply, &err) == 0;
		json_decref(reply);
		ctl_disconnect(c);
	}
	for (int i = 1; i < CTL_CONNECTIONS_MAX; i++)
		(void)close(fds[i]);
}
END_TEST

/* -- where the socket lies, and who may use it -- */

static mode_t mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

START_TEST(test_ctl_socket_is_the_owners_only)
{
	char parent[64];

	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_int_eq(
		strncmp(ctl_server_path(server), parent, strlen(parent)), 0);
	ck_assert_uint_eq(mode_of(parent), 0700);
	ck_assert_uint_eq(mode_of(ctl_server_path(server)), 0600);
}
END_TEST

/*
 * In a child process of user 65534 with one supplementary group: what
 * connecting and asking gives.
 */
static int ask_as_nobody(gid_t gid)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct ctl_client *c = NULL;
		json_t *reply = NULL;
		int rc = 0;

		if (setgroups(1, &gid) < 0 || setgid(65534) < 0 ||
			setuid(65534) < 0)
			_exit(99);
		rc = ctl_connect_path(&c, ctl_server_path(server), &err);
		if (rc == 0)
			rc = ctl_request(c, json_pack("{s:s}", "cmd", "echo"),
				20, NULL, NULL, &reply, &err);
		_exit(-rc);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

START_TEST(test_ctl_keeps_other_users_out_by_mode_and_by_credentials)
{
	char parent[64];

	if (geteuid() != 0)
		return; /* cannot become another user */
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chmod(parent, 0755), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
	ck_assert_int_eq(chmod(ctl_server_path(server), 0666), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EREMOTEIO);
}
END_TEST

START_TEST(test_ctl_lets_members_of_the_group_in_and_no_others)
{
	const struct group *group = getgrgid(1);
	char parent[64];

	if (geteuid() != 0 || !group)
		return; /* cannot become another user */
	ctl_server_stop(server);
	ck_assert_int_eq(chmod(dir, 0711), 0);
	ck_assert_msg(ctl_server_start(&server, "/mnt/x", group->gr_name,
			      commands, NULL, &err) == 0,
		"%s", err.msg);
	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_uint_eq(mode_of(parent), 0711);
	ck_assert_uint_eq(mode_of(ctl_server_path(server)), 0660);
	ck_assert_int_eq(ask_as_nobody(1), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
}
END_TEST

START_TEST(test_ctl_refuses_a_group_that_does_not_exist)
{
	struct ctl_server *other = NULL;

	ck_assert_int_eq(ctl_server_start(&other, "/mnt/y", "no-such-group",
				 commands, NULL, &err),
		-EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "no-such-group"));
}
END_TEST

START_TEST(test_ctl_servers_of_one_mountpoint_do_not_share_a_socket)
{
	struct ctl_server *other = NULL;

	ck_assert_int_eq(ctl_server_start(&other, "/mnt/x", NULL, commands,
				 NULL, &err),
		0);
	ck_assert_str_ne(ctl_server_path(other), ctl_server_path(server));
	ctl_server_stop(other);
	expect_echo(raw(), 1);
}
END_TEST

START_TEST(test_ctl_start_removes_the_sockets_of_dead_daemons)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ctl_server *other = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		"%.80s/refrain/dead.sock", dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	(void)close(fd);
	ck_assert_int_eq(ctl_server_start(&other, "/mnt/y", NULL, commands,
				 NULL, &err),
		0);
	ck_assert_int_eq(access(addr.sun_path, F_OK), -1);
	ck_assert_int_eq(access(ctl_server_path(server), F_OK), 0);
	ctl_server_stop(other);
}
END_TEST

START_TEST(test_ctl_passes_by_a_runtime_dir_too_long_for_a_socket)
{
	struct ctl_server *other = NULL;
	char deep[512], *at = deep;

	at += snprintf(deep, sizeof(deep), "%s", dir);
	for (int i = 0; i < 4; i++) {
		at += snprintf(at, 32, "/%030d", i);
		ck_assert_int_eq(mkdir(deep, 0700), 0);
	}
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", deep, 1), 0);
	ck_assert_msg(ctl_server_start(&other, "/mnt/y", NULL, commands, NULL,
			      &err) == 0,
		"%s", err.msg);
	ck_assert_ptr_null(strstr(ctl_server_path(other), dir));
	ctl_server_stop(other);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(rmdir(deep), 0);
		*strrchr(deep, '/') = '\0';
	}
}
END_TEST

START_TEST(test_ctl_follows_no_link_that_somebody_planted_in_tmp)
{
	const uid_t uid = 54321;
	char path[64];
	int rc, status;
	pid_t pid;

	if (geteuid() != 0)
		return; /* /run/refrain cannot be kept from being used */
	(void)snprintf(path, sizeof(path), "/tmp/refrain-%u", (unsigned)uid);
	(void)unlink(path);
	ck_assert_int_eq(symlink(dir, path), 0);
	ck_assert_int_eq(chown(dir, uid, (gid_t)-1), 0);
	pid = fork();
	if (pid == 0) {
		struct ctl_server *other = NULL;

		(void)unsetenv("XDG_RUNTIME_DIR");
		if (setuid(uid) < 0)
			_exit(99);
		rc = ctl_server_start(
			&other, "/mnt/y", NULL, commands, NULL, &err);
		_exit(rc < 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)unlink(path);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* -- the client -- */

START_TEST(test_ctl_connect_says_what_is_no_refrain_mount)
{
	struct ctl_client *c = NULL;

	ck_assert_int_eq(ctl_connect(&c, dir, &err), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.msg, "not the root of a refrain"));
	ck_assert_int_eq(ctl_connect(&c, "/nonexistent", &err), -ENOENT);
}
END_TEST

START_TEST(test_ctl_connect_finds_the_socket_by_the_attribute)
{
	const char *path = ctl_server_path(server);
	struct ctl_client *c = NULL;
	char own[] = "./ctl-test-XXXXXX"; /* tmpfs may have no attributes */

	ck_assert_ptr_nonnull(mkdtemp(own));
	if (setxattr(own, CTL_XATTR, path, strlen(path), 0) == 0) {
		ck_assert_int_eq(ctl_connect(&c, own, &err), 0);
		ck_assert_int_eq(ctl_client_pid(c), getpid());
		ctl_disconnect(c);
	}
	ck_assert_int_eq(rmdir(own), 0);
}
END_TEST

/*
 * Runs without the fixture: TSan does not let a child start threads if its
 * parent had some.
 */
START_TEST(test_ctl_wait_gone_waits_for_the_process_to_end)
{
	int ready[2], status;
	struct ctl_client *c = NULL;
	char path[128];
	pid_t pid;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct ctl_server *own = NULL;

		if (ctl_server_start(
			    &own, "/mnt/y", NULL, commands, NULL, &err) < 0)
			_exit(1);
		(void)!write(ready[1], ctl_server_path(own), sizeof(path));
		(void)pause();
	}
	ck_assert_int_gt(read(ready[0], path, sizeof(path)), 0);
	ck_assert_int_eq(ctl_connect_path(&c, path, &err), 0);
	ck_assert_int_eq(ctl_client_pid(c), pid);
	ck_assert_int_eq(ctl_wait_gone(c, 10), -ETIMEDOUT);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(ctl_wait_gone(c, 20000), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ctl_disconnect(c);
	ck_assert_int_eq(ctl_connect_path(&c, path, &err), -ECONNREFUSED);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* -- names -- */

START_TEST(test_ctl_paths_of_any_bytes_go_through_json)
{
	static const char *const paths[] = {
		"a/b", "caf\xc3\xa9", "caf\xe9", "\xff\xfe", "a\nb\"c\\"};
	char *back = NULL;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		json_t *value = ctl_path_new(paths[i]);

		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(ctl_path_get(value, &back), 0);
		ck_assert_str_eq(back, paths[i]);
		free(back);
		json_decref(value);
	}
}
END_TEST

START_TEST(test_ctl_path_refuses_what_is_no_path)
{
	static const char *const values[] = {"1", "null", "\"\"", "{}",
		"{\"hex\":\"\"}", "{\"hex\":\"f\"}", "{\"hex\":\"fg\"}",
		"{\"hex\":\"6100\"}", "{\"hex\":7}", "[\"a\"]",
		"\"a\\u0000b\""};
	char *path = NULL;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		json_t *value = json_loads(values[i],
			JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(ctl_path_get(value, &path), -EINVAL);
		json_decref(value);
	}
}
END_TEST

static TCase *requests(void)
{
	TCase *tc = tcase_create("requests");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc,
		test_ctl_request_gets_its_progress_lines_and_then_its_reply);
	tcase_add_test(
		tc, test_ctl_request_reports_the_daemons_error_in_its_words);
	tcase_add_test(
		tc, test_ctl_request_times_out_when_the_daemon_is_silent);
	tcase_add_test(tc, test_ctl_answers_a_peer_that_only_stopped_sending);
	tcase_add_test(tc, test_ctl_command_learns_that_its_peer_hung_up);
	tcase_add_test(
		tc, test_ctl_stop_wakes_commands_and_removes_the_socket);
	tcase_add_test(tc, test_ctl_drops_a_peer_that_does_not_read);
	tcase_add_test(tc, test_ctl_connect_says_what_is_no_refrain_mount);
	tcase_add_test(tc, test_ctl_connect_finds_the_socket_by_the_attribute);
	tcase_add_test(tc, test_ctl_paths_of_any_bytes_go_through_json);
	tcase_add_test(tc, test_ctl_path_refuses_what_is_no_path);
	return tc;
}

static TCase *hostile(void)
{
	TCase *tc = tcase_create("hostile");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_ctl_refuses_garbage_and_goes_on, 0,
		(int)(sizeof(garbage) / sizeof(garbage[0])));
	tcase_add_test(tc, test_ctl_refuses_deep_nesting);
	tcase_add_test(tc, test_ctl_takes_a_request_of_the_largest_size);
	tcase_add_test(tc, test_ctl_refuses_a_longer_request_and_hangs_up);
	tcase_add_test(
		tc, test_ctl_hangs_up_when_the_rest_of_a_line_does_not_come);
	tcase_add_test(tc, test_ctl_survives_ten_thousand_mutations);
	tcase_add_test(
		tc, test_ctl_refuses_the_65th_connection_until_one_closes);
	return tc;
}

static TCase *places(void)
{
	TCase *tc = tcase_create("places");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_ctl_socket_is_the_owners_only);
	tcase_add_test(
		tc, test_ctl_keeps_other_users_out_by_mode_and_by_credentials);
	tcase_add_test(
		tc, test_ctl_lets_members_of_the_group_in_and_no_others);
	tcase_add_test(tc, test_ctl_refuses_a_group_that_does_not_exist);
	tcase_add_test(
		tc, test_ctl_servers_of_one_mountpoint_do_not_share_a_socket);
	tcase_add_test(tc, test_ctl_start_removes_the_sockets_of_dead_daemons);
	tcase_add_test(
		tc, test_ctl_passes_by_a_runtime_dir_too_long_for_a_socket);
	tcase_add_test(
		tc, test_ctl_follows_no_link_that_somebody_planted_in_tmp);
	return tc;
}

static TCase *processes(void)
{
	TCase *tc = tcase_create("processes");

	tcase_add_test(tc, test_ctl_wait_gone_waits_for_the_process_to_end);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("ctl");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, requests());
	suite_add_tcase(suite, hostile());
	suite_add_tcase(suite, places());
	suite_add_tcase(suite, processes());
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
