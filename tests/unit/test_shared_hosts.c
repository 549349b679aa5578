/* SPDX-License-Identifier: MIT */
/* Tests of loaders that share batches when their host closes, is killed, leaves
 * a child behind, or is followed by a host that refuses them. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "loader/share/share.h"
#include "shared_fixture.h"

/* -- Hosts end ------------------------------------------------------------- */

START_TEST(test_another_job_hosts_when_the_host_closes)
{
	struct refrain_config c = shared_config(3);
	struct refrain_loader *l[3];
	struct simple r[3];

	c.echo = 2.5;
	for (int i = 0; i < 3; i++) {
		struct refrain_config lone = alone(c);

		l[i] = open_loader(&c);
		simple_open(&r[i], &lone);
	}
	for (int n = 0; n < 8; n++)
		for (int i = 0; i < 3; i++)
			ck_assert_uint_gt(step_of(l[i], &r[i]), 0);
	ck_assert_uint_gt(step_of(l[2], &r[2]), 0);
	ck_assert_int_eq(refrain_close(l[0]), 0);
	ck_assert_uint_gt(step_of(l[1], &r[1]), 0);
	for (int n = 0; n < 8; n++)
		for (int i = 1; i < 3; i++)
			ck_assert_uint_gt(step_of(l[i], &r[i]), 0);
	ck_assert_uint_eq(stats_of(l[2]).share_takeovers, 1);
	/* Close the loader that is the host, which may be either of the two. */
	ck_assert_int_eq(refrain_close(l[1]), 0);
	while (step_of(l[2], &r[2]) > 0)
		;
	ck_assert_int_eq(refrain_close(l[2]), 0);
	for (int i = 0; i < 3; i++)
		simple_close(&r[i]);
}
END_TEST

START_TEST(test_a_job_goes_on_when_the_process_of_its_host_is_killed)
{
	struct refrain_config c = shared_config(2), lone = alone(c);
	struct refrain_loader *l;
	struct simple r;
	int told[2], status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	l = open_loader(&c);
	simple_open(&r, &lone);
	for (int n = 0; n < 4; n++)
		ck_assert_uint_gt(step_of(l, &r), 0);
	ck_assert_uint_eq(stats_of(l).share_host_pid, pid);
	ck_assert_uint_eq(stats_of(l).decodes, 0);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	while (step_of(l, &r) > 0)
		;
	ck_assert_uint_eq(stats_of(l).share_host_pid, getpid());
	ck_assert_uint_gt(stats_of(l).decodes, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

START_TEST(test_a_forked_child_may_close_and_release_and_nothing_happens)
{
	struct refrain_config c = shared_config(0), lone = alone(c);
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	struct simple r;
	int status;
	pid_t pid;

	simple_open(&r, &lone);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	pid = fork();
	if (pid == 0) {
		refrain_release(b);
		if (refrain_next(l, &b, 0) != -ECHILD || refrain_close(l) != 0)
			_exit(1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(simple_next(&r, b), 0);
	refrain_release(b);
	while (step_of(l, &r) > 0)
		;
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
}
END_TEST

/* -- Forked children that live on ------------------------------------------ */

enum host_ends { HOST_IS_KILLED, HOST_CLOSES };

/* Run a host with a child process that outlives the host. */
static void host_with_a_child(
	const struct refrain_config *c, int told, int hold, int tell)
{
	struct refrain_loader *l = open_loader(c);
	char byte;

	if (fork() == 0) {
		(void)close(tell);
		(void)!read(hold, &byte, 1);
		_exit(0);
	}
	(void)!write(told, "x", 1);
	(void)!read(tell, &byte, 1);
	(void)refrain_close(l);
	(void)!read(hold, &byte, 1);
	_exit(0);
}

START_TEST(test_a_job_goes_on_though_a_child_of_its_host_lives)
{
	struct refrain_config c = shared_config(2), lone = alone(c);
	struct refrain_loader *l;
	int told[2], hold[2], tell[2], status;
	struct simple r;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told) | pipe(hold) | pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(hold[1]);
		(void)close(tell[1]);
		host_with_a_child(&c, told[1], hold[0], tell[0]);
	}
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	l = open_loader(&c);
	simple_open(&r, &lone);
	for (int n = 0; n < 2; n++)
		ck_assert_uint_gt(step_of(l, &r), 0);
	if (_i == HOST_IS_KILLED) {
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	} else {
		(void)close(tell[1]);
	}
	while (step_of(l, &r) > 0)
		;
	ck_assert_uint_eq(stats_of(l).share_host_pid, getpid());
	ck_assert_int_eq(refrain_close(l), 0);
	(void)close(hold[1]);
	if (_i == HOST_CLOSES)
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	simple_close(&r);
	(void)close(told[0]);
	(void)close(told[1]);
	(void)close(hold[0]);
	(void)close(tell[0]);
	if (_i == HOST_IS_KILLED)
		(void)close(tell[1]);
}
END_TEST

START_TEST(test_a_job_that_has_closed_is_gone_though_its_child_lives)
{
	struct refrain_config c = shared_config(2), lone = alone(c);
	struct refrain_loader *l[2] = {open_loader(&c), open_loader(&c)};
	struct simple r;
	int hold[2], status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(hold), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(hold[1]);
		(void)!read(hold[0], &byte, 1);
		_exit(0);
	}
	simple_open(&r, &lone);
	ck_assert_int_eq(refrain_close(l[1]), 0);
	while (step_of(l[0], &r) > 0)
		;
	ck_assert_int_eq(refrain_close(l[0]), 0);
	(void)close(hold[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	simple_close(&r);
	(void)close(hold[0]);
}
END_TEST
/* -- A next host that refuses ---------------------------------------------- */

static int listen_as_host(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path),
		"%.64s/refrain-share/x.sock", run_dir);
	(void)unlink(at.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static void refuse_one(int listener, int error)
{
	struct share_msg msg = {.type = SHARE_REFUSE, .refuse.error = error};
	char bytes[8192];
	CLEANUP_FD int fd = accept(listener, NULL, NULL);
	size_t n = share_msg_print(&msg, bytes, sizeof(bytes));

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), n);
	ck_assert_int_gt(read(fd, bytes, sizeof(bytes)), 0);
}

/* Kill the job's host. Then listen in its place, as the next host, and refuse
 * the job with `error` until it goes on alone. */
static void refuse_next(pid_t host, struct refrain_loader *l, int error)
{
	CLEANUP_FD int listener = listen_as_host();
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int status;

	ck_assert_int_eq(kill(host, SIGKILL), 0);
	ck_assert_int_eq(waitpid(host, &status, 0), host);
	while (!stats_of(l).share_solo)
		if (poll(&p, 1, 1) == 1)
			refuse_one(listener, error);
}

START_TEST(test_a_job_that_the_next_host_refuses_goes_on_alone)
{
	static const int errors[] = {-ESTALE, -ETIMEDOUT};
	struct refrain_config c = shared_config(2), lone = alone(c);
	uint8_t state[REFRAIN_STATE_MAX];
	struct refrain_loader *l, *again;
	struct simple r;
	int told[2], n;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	l = open_loader(&c);
	simple_open(&r, &lone);
	for (n = 0; n < 2; n++)
		ck_assert_uint_gt(step_of(l, &r), 0);
	refuse_next(pid, l, errors[_i]);
	/* The job still gets the batches that the old host has announced. */
	n = refrain_save(l, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	lone.state = state;
	lone.state_bytes = (size_t)n;
	again = open_loader(&lone);
	ck_assert_uint_eq(refrain_step(again), refrain_step(l));
	ck_assert_int_eq(refrain_close(again), 0);
	while (step_of(l, &r) > 0)
		;
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

/* Let the job join, and end before it has a batch. */
static void welcome_one(int listener)
{
	struct share_msg msg;
	char bytes[8192];
	CLEANUP_FD int fd = accept(listener, NULL, NULL);
	ssize_t n = read(fd, bytes, sizeof(bytes));

	ck_assert_int_eq(share_msg_parse(bytes, (size_t)n, &msg), 0);
	ck_assert_int_eq(msg.type, SHARE_HELLO);
	ck_assert_int_eq(msg.hello.wish, SHARE_WISH_AGAIN);
	msg = (struct share_msg){.type = SHARE_WELCOME,
		.welcome = {.step = msg.hello.step, .generation = 1}};
	n = (ssize_t)share_msg_print(&msg, bytes, sizeof(bytes));
	ck_assert_int_eq(write(fd, bytes, (size_t)n), n);
	msg = (struct share_msg){.type = SHARE_VIEW,
		.view = {.generation = 1, .wanted = 2, .name = "x"}};
	n = (ssize_t)share_msg_print(&msg, bytes, sizeof(bytes));
	ck_assert_int_eq(write(fd, bytes, (size_t)n), n);
}

START_TEST(test_a_job_goes_on_when_the_next_host_ends_before_it_begins)
{
	struct refrain_config c = shared_config(2), lone = alone(c);
	struct refrain_loader *l;
	struct simple r;
	int told[2], listener, status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	l = open_loader(&c);
	simple_open(&r, &lone);
	for (int n = 0; n < 2; n++)
		ck_assert_uint_gt(step_of(l, &r), 0);
	listener = listen_as_host();
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	welcome_one(listener);
	(void)close(listener);
	while (step_of(l, &r) > 0)
		;
	ck_assert_uint_eq(stats_of(l).share_takeovers, 2);
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

START_TEST(test_the_log_of_a_job_that_goes_on_alone_has_all_changes)
{
	const char *lines = "12 2/1\n80 1/1\n";
	struct refrain_config c = changing_config(2, lines), lone;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	char byte, log[64];
	int told[2];
	uint64_t hash;
	pid_t pid;

	c.epochs = 6;
	lone = alone(c);
	hash = hash_of(&lone);
	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	l = open_loader(&c);
	for (int n = 0; n < 5; n++) {
		ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
		refrain_release(b);
	}
	refuse_next(pid, l, -ESTALE);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	ck_assert_uint_eq(stats_of(l).stream_hash, hash);
	ck_assert_int_gt(refrain_echo_log(l, log, sizeof(log)), 0);
	ck_assert_str_eq(log, lines);
	ck_assert_uint_eq(stats_of(l).echo_changes, 2);
	ck_assert_uint_eq(refrain_steps_left(l), 0);
	ck_assert_int_eq(refrain_close(l), 0);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shared-hosts");
	TCase *t = case_with(s, "shared", make_all, remove_all);

	tcase_add_test(t, test_another_job_hosts_when_the_host_closes);
	tcase_add_test(
		t, test_a_job_goes_on_when_the_process_of_its_host_is_killed);
	tcase_add_test(t,
		test_a_forked_child_may_close_and_release_and_nothing_happens);
	tcase_add_loop_test(t,
		test_a_job_goes_on_though_a_child_of_its_host_lives,
		test_has_pidfd() ? HOST_IS_KILLED : HOST_CLOSES,
		HOST_CLOSES + 1);
	tcase_add_loop_test(
		t, test_a_job_that_the_next_host_refuses_goes_on_alone, 0, 2);
	tcase_add_test(
		t, test_a_job_goes_on_when_the_next_host_ends_before_it_begins);
	tcase_add_test(
		t, test_the_log_of_a_job_that_goes_on_alone_has_all_changes);
	tcase_add_test(
		t, test_a_job_that_has_closed_is_gone_though_its_child_lives);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
