/* SPDX-License-Identifier: MIT */
/*
 * Tests of loaders that share batches: several in one process, one after the
 * other in one thread, compared with the simple loader byte for byte.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "share/share.h"
#include "shared_fixture.h"

#define JOBS_MAX 3

static int refused(const struct refrain_config *c, const char *what)
{
	struct refrain_loader *l;
	int rc = refrain_open(&l, c);

	ck_assert_int_lt(rc, 0);
	ck_assert_msg(strstr(refrain_message(NULL), what), "%s",
		refrain_message(NULL));
	return rc;
}

/* -- The same streams ------------------------------------------------------ */

static void check_jobs(const struct refrain_config *c, unsigned jobs)
{
	struct refrain_loader *l[JOBS_MAX];
	struct simple r[JOBS_MAX];
	uint64_t decodes = 0;
	bool going = true;

	for (unsigned i = 0; i < jobs; i++) {
		struct refrain_config lone = alone(c[i]);

		l[i] = open_loader(&c[i]);
		simple_open(&r[i], &lone);
	}
	while (going) {
		going = false;
		for (unsigned i = 0; i < jobs; i++)
			for (uint32_t n = 0; n < c[0].share_batch / c[i].batch;
				n++)
				going = step_of(l[i], &r[i]) > 0 || going;
	}
	for (unsigned i = 0; i < jobs; i++) {
		struct refrain_stats st = stats_of(l[i]);

		decodes += st.decodes;
		ck_assert_uint_eq(st.fresh, IMAGES * c[0].epochs);
		ck_assert_uint_eq(st.epochs, c[0].epochs);
		ck_assert_uint_eq(st.share_jobs, jobs);
	}
	ck_assert_uint_eq(decodes, IMAGES * c[0].epochs);
	for (unsigned i = 0; i < jobs; i++) {
		ck_assert_int_eq(refrain_close(l[i]), 0);
		simple_close(&r[i]);
	}
}

START_TEST(test_jobs_get_the_stream_that_each_would_have_alone)
{
	struct refrain_config c[JOBS_MAX];

	for (unsigned i = 0; i < JOBS_MAX; i++) {
		c[i] = shared_config(JOBS_MAX);
		c[i].echo = 2.5;
		c[i].epochs = 2;
		c[i].echo_point = _i;
		c[i].share_batch = c[i].batch;
	}
	check_jobs(c, JOBS_MAX);
}
END_TEST

START_TEST(test_slices_are_the_stream_of_their_size)
{
	struct refrain_config c[3];

	for (unsigned i = 0; i < 3; i++) {
		c[i] = shared_config(3);
		c[i].threads = _i ? 4U >> i : 1U << i;
		c[i].echo = _i ? 2.5 : 1;
		c[i].epochs = 2;
		c[i].window = 256;
		c[i].share_batch = 32;
		c[i].batch = 8U << i;
	}
	check_jobs(c, 3);
}
END_TEST

/* -- What is refused ------------------------------------------------------- */

START_TEST(test_what_a_share_cannot_do_is_refused)
{
	struct refrain_config c = shared_config(0);

	c.share = "a/b";
	ck_assert_int_eq(refused(&c, "'/'"), -EINVAL);
	c = shared_config(0);
	c.share_batch = 40;
	ck_assert_int_eq(refused(&c, "share_batch"), -EINVAL);
	c = shared_config(0);
	c.augment = REFRAIN_AUGMENT_EVAL;
	ck_assert_int_eq(refused(&c, "evaluation"), -EINVAL);
	c = shared_config(2);
	c.share = NULL;
	ck_assert_int_eq(refused(&c, "share_jobs"), -EINVAL);
	c = shared_config(0);
	c.share_batch = 32;
	c.echo_point = REFRAIN_ECHO_BATCH;
	ck_assert_int_eq(refused(&c, "share_batch"), -EINVAL);
}
END_TEST

START_TEST(test_another_configuration_is_refused_and_named)
{
	struct refrain_config c = shared_config(2), other;
	struct refrain_loader *l = open_loader(&c);

	other = c;
	other.seed++;
	ck_assert_int_eq(refused(&other, "seed differs"), -ESTALE);
	other = c;
	other.type = REFRAIN_F32;
	ck_assert_int_eq(refused(&other, "type differs"), -ESTALE);
	other = c;
	other.epochs = 7;
	ck_assert_int_eq(refused(&other, "epochs differs"), -ESTALE);
	other = c;
	other.batch = 32;
	ck_assert_int_eq(refused(&other, "batch differs"), -ESTALE);
	other = c;
	other.flags = REFRAIN_FLAG_NO_FLIP;
	ck_assert_int_eq(refused(&other, "flags differs"), -ESTALE);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* -- Lending --------------------------------------------------------------- */

START_TEST(test_a_batch_outlives_its_loader_and_its_host)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l[2] = {open_loader(&c), open_loader(&c)};
	const struct refrain_batch *b[2];
	CLEANUP_FREE char *copy = NULL;
	int rc;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(refrain_next(l[i], &b[i], WAIT_MS), 1);
	ck_assert_ptr_ne(b[0]->data, b[1]->data);
	copy = malloc(b[1]->data_bytes);
	memcpy(copy, b[1]->data, b[1]->data_bytes);
	ck_assert_int_eq(refrain_close(l[1]), 0);
	/* The host uses all of its slots. */
	refrain_release(b[0]);
	while ((rc = refrain_next(l[0], &b[0], WAIT_MS)) == 1)
		refrain_release(b[0]);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(refrain_close(l[0]), 0);
	ck_assert_int_eq(memcmp(copy, b[1]->data, b[1]->data_bytes), 0);
	ck_assert_int_ge(b[1]->labels[0], 0);
	refrain_release(b[1]);
}
END_TEST

START_TEST(test_a_batch_cannot_be_written_to)
{
	struct refrain_config c = shared_config(0);
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	const void *base;
	size_t bytes;

	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	ck_assert_int_eq(refrain_memory(l, &base, &bytes), 0);
	ck_assert((const char *)b->data >= (const char *)base &&
		(const char *)b->data + b->data_bytes <=
			(const char *)base + bytes);
	ck_assert_int_ne(
		mprotect((void *)(uintptr_t)base, bytes, PROT_WRITE), 0);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_all_batches_lent_is_an_error)
{
	struct refrain_config c = shared_config(0);
	struct refrain_loader *l;
	const struct refrain_batch *b[4];

	c.batches_ahead = 2;
	l = open_loader(&c);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(refrain_next(l, &b[i], WAIT_MS), 1);
	ck_assert_int_eq(refrain_next(l, &b[3], WAIT_MS), -EBUSY);
	ck_assert_ptr_nonnull(strstr(refrain_message(l), "release one"));
	refrain_release(b[1]);
	refrain_release(b[1]); /* twice: once is enough */
	ck_assert_int_eq(refrain_next(l, &b[3], WAIT_MS), 1);
	ck_assert_uint_eq(b[3]->step, 3);
	ck_assert_int_eq(refrain_close(l), 0);
	refrain_release(b[0]);
	refrain_release(b[2]);
	refrain_release(b[3]);
}
END_TEST

/* -- Waiting --------------------------------------------------------------- */

START_TEST(test_a_time_out_says_who_is_waited_for)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l[2];
	const struct refrain_batch *b;
	int rc;

	c.batches_ahead = 2;
	l[0] = open_loader(&c);
	ck_assert_int_eq(refrain_next(l[0], &b, 20), -ETIMEDOUT);
	ck_assert_msg(strstr(refrain_message(l[0]), "1 of 2 jobs"), "%s",
		refrain_message(l[0]));
	l[1] = open_loader(&c);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(refrain_next(l[0], &b, WAIT_MS), 1);
		refrain_release(b);
	}
	while ((rc = refrain_next(l[0], &b, 20)) == 1)
		refrain_release(b);
	ck_assert_int_eq(rc, -ETIMEDOUT);
	ck_assert_msg(
		strstr(refrain_message(l[0]), "waits for job 'test_shared"),
		"%s", refrain_message(l[0]));
	ck_assert_int_eq(refrain_close(l[0]), 0);
	ck_assert_int_eq(refrain_close(l[1]), 0);
}
END_TEST

/* -- States ---------------------------------------------------------------- */

START_TEST(test_jobs_go_on_from_their_states_at_different_steps)
{
	struct refrain_config c = shared_config(2), lone;
	struct refrain_loader *l[2];
	uint8_t state[2][REFRAIN_STATE_MAX];
	struct simple r[2];
	int bytes[2], going = 2;

	c.echo = 2.5;
	c.share_batch = 32;
	c.window = 256;
	lone = alone(c);
	for (int i = 0; i < 2; i++) {
		l[i] = open_loader(&c);
		simple_open(&r[i], &lone);
	}
	for (int i = 0; i < 2; i++) {
		for (int n = 0; n < 3 + 2 * i; n++)
			ck_assert_uint_gt(step_of(l[i], &r[i]), 0);
		bytes[i] = refrain_save(l[i], state[i], sizeof(state[i]));
		ck_assert_int_gt(bytes[i], 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(refrain_close(l[i]), 0);
	for (int i = 0; i < 2; i++) {
		c.state = state[i];
		c.state_bytes = (size_t)bytes[i];
		l[i] = open_loader(&c);
		ck_assert_uint_eq(refrain_step(l[i]), 3 + 2 * i);
	}
	while (going)
		for (int i = going = 0; i < 2; i++)
			for (int n = 0; n < 2; n++)
				going += step_of(l[i], &r[i]) > 0;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(refrain_close(l[i]), 0);
		simple_close(&r[i]);
	}
}
END_TEST

START_TEST(test_a_job_goes_on_among_the_last_echoes)
{
	struct refrain_config c = shared_config(0), lone;
	uint8_t state[REFRAIN_STATE_MAX];
	struct refrain_loader *l;
	struct simple r;
	unsigned steps = 0;
	int bytes;

	c.echo = 2.5;
	c.share_batch = 32;
	c.window = 256;
	lone = alone(c);
	simple_open(&r, &lone);
	l = open_loader(&c);
	while (step_of(l, &r) > 0)
		steps++;
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);

	simple_open(&r, &lone);
	l = open_loader(&c);
	for (unsigned n = 1; n < steps; n++)
		ck_assert_uint_gt(step_of(l, &r), 0);
	bytes = refrain_save(l, state, sizeof(state));
	ck_assert_int_gt(bytes, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	c.state = state;
	c.state_bytes = (size_t)bytes;
	l = open_loader(&c);
	ck_assert_uint_gt(step_of(l, &r), 0);
	ck_assert_uint_eq(step_of(l, &r), 0);
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
}
END_TEST

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
	/* The host once more, whichever that is. */
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

/* Hosts, and has a child that outlives it. */
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

/* -- Runs whose echo factor changes --------------------------------------- */

static uint64_t hash_of(const struct refrain_config *c)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;
	uint64_t hash;

	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	hash = stats_of(l).stream_hash;
	ck_assert_int_eq(refrain_close(l), 0);
	return hash;
}

static struct refrain_config changing_config(uint32_t jobs, const char *log)
{
	struct refrain_config c = shared_config(jobs);

	c.echo = REFRAIN_ECHO_AUTO;
	c.echo_max = 2;
	c.echo_log = log;
	c.epochs = 4;
	c.window = 512;
	return c;
}

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

/* The job's host is killed, and the next one refuses the job. */
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
	/* Batches that the old host announced are still to come. */
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

/* Lets the job in, and ends before it has a batch. */
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

/* -- Slices ---------------------------------------------------------------- */

START_TEST(test_a_state_of_the_end_of_the_run_has_no_batch)
{
	struct refrain_config c = shared_config(0);
	uint8_t state[REFRAIN_STATE_MAX];
	const struct refrain_batch *b;
	struct refrain_loader *l;
	int n;

	c.share_batch = 32; /* 300 examples: the last has one slice */
	c.window = 256;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	n = refrain_save(l, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	c.state = state;
	c.state_bytes = (size_t)n;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_a_job_that_holds_a_slice_of_each_batch_is_told)
{
	struct refrain_config c = shared_config(0);
	const struct refrain_batch *b[3], *other;
	struct refrain_loader *l;

	c.share_batch = 32;
	c.window = 256;
	c.batches_ahead = 2;
	l = open_loader(&c);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(refrain_next(l, &b[i], WAIT_MS), 1);
		ck_assert_int_eq(refrain_next(l, &other, WAIT_MS), 1);
		refrain_release(other);
	}
	ck_assert_int_eq(refrain_next(l, &other, 20), -EBUSY);
	ck_assert_ptr_nonnull(strstr(refrain_message(l), "release one"));
	refrain_release(b[0]);
	ck_assert_int_eq(refrain_next(l, &b[0], WAIT_MS), 1);
	ck_assert_int_eq(refrain_close(l), 0);
	for (int i = 0; i < 3; i++)
		refrain_release(b[i]);
}
END_TEST

/* -- The echo factor changes ----------------------------------------------- */

START_TEST(test_the_echo_log_may_be_freed_after_open)
{
	char log[] = "12 2/1\n";
	struct refrain_config c = changing_config(2, log), lone = alone(c);
	struct refrain_loader *l[2];
	const struct refrain_batch *b;
	uint64_t hash = hash_of(&lone);
	int going = 2;

	l[0] = open_loader(&c);
	memset(log, 'x', sizeof(log) - 1);
	c.echo_log = "12 2/1\n";
	l[1] = open_loader(&c);
	while (going)
		for (int i = going = 0; i < 2; i++) {
			int rc = refrain_next(l[i], &b, WAIT_MS);

			ck_assert_msg(rc >= 0, "%s", refrain_message(l[i]));
			if (rc == 1)
				refrain_release(b);
			going += rc;
		}
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(stats_of(l[i]).stream_hash, hash);
		ck_assert_uint_eq(stats_of(l[i]).echo_changes, 1);
		ck_assert_int_eq(refrain_close(l[i]), 0);
	}
}
END_TEST

START_TEST(test_another_echo_log_is_refused)
{
	struct refrain_config c = changing_config(2, "12 2/1\n"), other = c;
	struct refrain_loader *l = open_loader(&c);

	other.echo_log = "14 2/1\n";
	ck_assert_int_eq(refused(&other, "echo_log differs"), -ESTALE);
	other.echo_log = NULL;
	ck_assert_int_eq(refused(&other, "echo_log differs"), -ESTALE);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_a_state_before_the_first_batch_of_a_late_job_is_right)
{
	struct refrain_config c = changing_config(0, "12 2/1\n"), lone;
	uint8_t late[REFRAIN_STATE_MAX], there[REFRAIN_STATE_MAX];
	struct refrain_loader *l[2] = {open_loader(&c)}, *again;
	const struct refrain_batch *b;
	int n;

	while (refrain_step(l[0]) < 30) {
		ck_assert_int_eq(refrain_next(l[0], &b, WAIT_MS), 1);
		refrain_release(b);
	}
	l[1] = open_loader(&c);
	n = refrain_save(l[1], late, sizeof(late));
	ck_assert_int_gt(n, 0);
	/* The same as that of the other job, when it is there. */
	while (refrain_step(l[0]) < refrain_step(l[1])) {
		ck_assert_int_eq(refrain_next(l[0], &b, WAIT_MS), 1);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_save(l[0], there, sizeof(there)), n);
	ck_assert_int_eq(memcmp(late, there, (size_t)n), 0);
	lone = alone(c);
	lone.state = late;
	lone.state_bytes = (size_t)n;
	again = open_loader(&lone);
	ck_assert_uint_eq(refrain_step(again), refrain_step(l[1]));
	ck_assert_int_eq(refrain_close(again), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(refrain_close(l[i]), 0);
}
END_TEST

START_TEST(test_a_late_job_knows_how_the_echo_factor_has_changed)
{
	struct refrain_config c = changing_config(0, "12 2/1\n");
	struct refrain_loader *l[2] = {open_loader(&c)};
	const struct refrain_batch *b;
	int going = 1;

	while (refrain_step(l[0]) < 30) {
		ck_assert_int_eq(refrain_next(l[0], &b, WAIT_MS), 1);
		refrain_release(b);
	}
	l[1] = open_loader(&c);
	while (going)
		for (int i = going = 0; i < 2; i++) {
			int rc = refrain_next(l[i], &b, i ? 1 : WAIT_MS);

			ck_assert_msg(rc >= 0 || rc == -ETIMEDOUT, "%s",
				refrain_message(l[i]));
			if (rc == 1)
				refrain_release(b);
			going += rc != 0;
		}
	ck_assert_uint_gt(stats_of(l[1]).steps, 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(refrain_close(l[i]), 0);
}
END_TEST

START_TEST(test_jobs_that_are_restored_follow_the_next_change)
{
	struct refrain_config c = changing_config(2, "12 2/1\n80 1/1\n");
	struct refrain_loader *l[2];
	uint8_t state[REFRAIN_STATE_MAX];
	const struct refrain_batch *b;
	int bytes = 0, going = 1;

	c.epochs = 6;
	for (int part = 0; part < 2; part++) {
		for (int i = 0; i < 2; i++)
			l[i] = open_loader(&c);
		while (going && (part || refrain_step(l[0]) < 5))
			for (int i = going = 0; i < 2; i++) {
				int rc = refrain_next(l[i], &b, WAIT_MS);

				ck_assert_msg(
					rc >= 0, "%s", refrain_message(l[i]));
				if (rc == 1)
					refrain_release(b);
				going += rc;
			}
		ck_assert_uint_eq(stats_of(l[1]).echo_changes, part + 1U);
		bytes = refrain_save(l[0], state, sizeof(state));
		ck_assert_int_gt(bytes, 0);
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(refrain_close(l[i]), 0);
		c.state = state;
		c.state_bytes = (size_t)bytes;
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shared");
	TCase *t = case_with(s, "shared", make_all, remove_all);

	tcase_add_loop_test(
		t, test_jobs_get_the_stream_that_each_would_have_alone, 0, 3);
	tcase_add_loop_test(t, test_slices_are_the_stream_of_their_size, 0, 2);
	tcase_add_test(t, test_what_a_share_cannot_do_is_refused);
	tcase_add_test(t, test_another_configuration_is_refused_and_named);
	tcase_add_test(t, test_a_batch_outlives_its_loader_and_its_host);
	tcase_add_test(t, test_a_batch_cannot_be_written_to);
	tcase_add_test(t, test_all_batches_lent_is_an_error);
	tcase_add_test(t, test_a_time_out_says_who_is_waited_for);
	tcase_add_test(t, test_jobs_go_on_from_their_states_at_different_steps);
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
	tcase_add_test(t, test_a_state_of_the_end_of_the_run_has_no_batch);
	tcase_add_test(t, test_a_job_that_holds_a_slice_of_each_batch_is_told);
	tcase_add_test(t, test_another_echo_log_is_refused);
	tcase_add_test(
		t, test_a_state_before_the_first_batch_of_a_late_job_is_right);
	tcase_add_test(t, test_the_echo_log_may_be_freed_after_open);
	tcase_add_test(
		t, test_a_late_job_knows_how_the_echo_factor_has_changed);
	tcase_add_test(t, test_jobs_that_are_restored_follow_the_next_change);
	tcase_add_test(t, test_a_job_goes_on_among_the_last_echoes);
	tcase_add_test(
		t, test_a_job_that_has_closed_is_gone_though_its_child_lives);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
