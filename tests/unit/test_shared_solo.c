/* SPDX-License-Identifier: MIT */
/*
 * Tests of jobs of a share that continue alone when they are slow, and come
 * back.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/clock.h"
#include "shared_fixture.h"

#define EPOCHS 8

/* A job, and the batches that it must get. */
struct job {
	struct refrain_loader *l;
	struct simple r;
};

static void open_job(struct job *j, struct refrain_config c, bool solo)
{
	struct refrain_config lone = alone(c);

	if (solo)
		c.share_slow = REFRAIN_SHARE_SOLO;
	simple_open(&j->r, &lone);
	j->l = open_loader(&c);
}

static void close_job(struct job *j)
{
	ck_assert_int_eq(refrain_close(j->l), 0);
	simple_close(&j->r);
}

static void steps_of(struct job *j, unsigned n)
{
	while (n-- > 0)
		ck_assert_uint_gt(step_of(j->l, &j->r), 0);
}

/* Consume a batch if one is ready. */
static void step_if_ready(struct job *j)
{
	const struct refrain_batch *b;
	int rc = refrain_next(j->l, &b, 1);

	ck_assert_msg(rc == 1 || rc == -ETIMEDOUT, "%d: %s", rc,
		refrain_message(j->l));
	if (rc != 1)
		return;
	ck_assert_uint_gt(simple_next(&j->r, b), 0);
	refrain_release(b);
}

/* Run until the last job is back in the share. Jobs that are behind it run,
 * too. */
static void catch_up(struct job *jobs, unsigned n)
{
	struct job *late = &jobs[n - 1];

	while (stats_of(late->l).share_solo) {
		for (unsigned i = 0; i + 1 < n; i++)
			if (refrain_step(jobs[i].l) < refrain_step(late->l))
				step_if_ready(&jobs[i]);
		step_if_ready(late);
	}
}

/* Run all jobs to the end, beginning with the last one, because the others may
 * have to wait for it. */
static void run_out(struct job *jobs, unsigned n)
{
	bool over[3] = {false};
	struct job *last;

	do {
		last = NULL;
		for (unsigned i = 0; i < n; i++)
			if (!over[i] &&
				(!last ||
					refrain_step(jobs[i].l) <
						refrain_step(last->l)))
				last = &jobs[i];
		if (last)
			over[last - jobs] = step_of(last->l, &last->r) == 0;
	} while (last);
}

static struct refrain_config solo_config(uint32_t jobs)
{
	struct refrain_config c = shared_config(jobs);

	c.epochs = EPOCHS;
	c.batches_ahead = 3;
	return c;
}

START_TEST(test_a_slow_job_goes_on_alone_and_comes_back)
{
	struct refrain_config c = solo_config(3);
	const struct refrain_batch *held;
	CLEANUP_FREE char *copy = NULL;
	struct job j[3];
	unsigned each = 1;

	if (_i) { /* use slices and echoes */
		c.echo = 2.5;
		c.share_batch = 32;
		c.window = 256;
		each = 2;
	}
	for (int i = 0; i < 3; i++)
		open_job(&j[i], c, i == 2);
	for (int i = 0; i < 3; i++)
		steps_of(&j[i], 3 * each - 1);
	ck_assert_int_eq(refrain_next(j[2].l, &held, WAIT_MS), 1);
	copy = malloc(held->data_bytes);
	memcpy(copy, held->data, held->data_bytes);
	for (int n = 0; n < 20; n++)
		for (int i = 0; i < 2; i++)
			steps_of(&j[i], each);
	/* The batches that the job holds are unchanged. */
	ck_assert_int_eq(memcmp(copy, held->data, held->data_bytes), 0);
	ck_assert_uint_gt(simple_next(&j[2].r, held), 0);
	refrain_release(held);
	steps_of(&j[2], 1);
	catch_up(j, 3);
	ck_assert_uint_ge(refrain_step(j[2].l), 20);
	run_out(j, 3);
	ck_assert_uint_eq(stats_of(j[2].l).share_parted, 1);
	ck_assert_uint_gt(stats_of(j[2].l).decodes, 0);
	ck_assert_uint_eq(stats_of(j[2].l).epochs, EPOCHS);
	ck_assert_uint_eq(stats_of(j[1].l).share_parted, 0);
	for (int i = 0; i < 3; i++)
		close_job(&j[i]);
}
END_TEST

enum pause { PAUSE_IN_GRACE, PAUSE_TOO_LONG };

START_TEST(test_a_pause_at_the_end_of_an_epoch_has_a_limit_of_its_own)
{
	struct refrain_config c = solo_config(2);
	const struct refrain_batch *b;
	uint64_t epoch_end;
	struct job j[2];
	int rc;

	c.share_grace_s = _i == PAUSE_TOO_LONG ? 2 : 0;
	for (int i = 0; i < 2; i++)
		open_job(&j[i], c, i == 1);
	epoch_end = refrain_epoch_end(j[0].l, 0);
	while (refrain_step(j[1].l) < epoch_end)
		for (int i = 0; i < 2; i++)
			steps_of(&j[i], 1);
	while ((rc = refrain_next(j[0].l, &b, 1500)) == 1 &&
		!stats_of(j[1].l).share_solo) {
		ck_assert_uint_gt(simple_next(&j[0].r, b), 0);
		refrain_release(b);
	}
	if (_i == PAUSE_IN_GRACE) {
		ck_assert_int_eq(rc, -ETIMEDOUT);
		ck_assert_uint_eq(stats_of(j[1].l).share_parted, 0);
	} else {
		if (rc == -ETIMEDOUT)
			ck_assert_int_eq(refrain_next(j[0].l, &b, WAIT_MS), 1);
		ck_assert_uint_gt(simple_next(&j[0].r, b), 0);
		refrain_release(b);
		steps_of(&j[1], 1);
		ck_assert_uint_eq(stats_of(j[1].l).share_parted, 1);
		catch_up(j, 2);
	}
	run_out(j, 2);
	for (int i = 0; i < 2; i++)
		close_job(&j[i]);
}
END_TEST

START_TEST(test_a_job_that_is_alone_comes_back_to_the_next_host)
{
	struct refrain_config c = solo_config(3);
	int told[2], status;
	struct job j[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++)
		open_job(&j[i], c, i == 1);
	for (int i = 0; i < 2; i++)
		steps_of(&j[i], 3);
	steps_of(&j[0], 12);
	steps_of(&j[1], 2);
	ck_assert_uint_eq(stats_of(j[1].l).share_solo, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	steps_of(&j[0], 8);
	catch_up(j, 2);
	ck_assert_uint_eq(stats_of(j[1].l).share_takeovers, 1);
	run_out(j, 2);
	for (int i = 0; i < 2; i++)
		close_job(&j[i]);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

/* The host is stopped for a while. */
START_TEST(test_a_job_that_passes_the_others_waits_for_them)
{
	struct refrain_config c = solo_config(3);
	int told[2], status;
	struct job j[2];
	uint64_t passed;
	bool back = false;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		host_in_child(&c, told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++)
		open_job(&j[i], c, i == 1);
	for (int i = 0; i < 2; i++)
		steps_of(&j[i], 3);
	steps_of(&j[0], 12);
	steps_of(&j[1], 2);
	ck_assert_uint_eq(stats_of(j[1].l).share_solo, 1);
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	steps_of(&j[1], 30);
	passed = refrain_step(j[1].l);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	/* The host must notice this before the job is ahead by this many more
	 * batches. On a busy machine the job may have been slow again since
	 * then. */
	while (refrain_step(j[0].l) < passed) {
		step_if_ready(&j[0]);
		step_if_ready(&j[1]);
		back = back || !stats_of(j[1].l).share_solo ||
			stats_of(j[1].l).share_parted > 1;
	}
	ck_assert(back);
	run_out(j, 2);
	for (int i = 0; i < 2; i++)
		close_job(&j[i]);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

START_TEST(test_a_job_that_is_alone_ends_its_run_without_the_others)
{
	struct refrain_config c = solo_config(2);
	struct job j[2];

	for (int i = 0; i < 2; i++)
		open_job(&j[i], c, i == 1);
	for (int i = 0; i < 2; i++)
		steps_of(&j[i], 3);
	while (step_of(j[0].l, &j[0].r) > 0)
		;
	close_job(&j[0]);
	while (step_of(j[1].l, &j[1].r) > 0)
		;
	close_job(&j[1]);
}
END_TEST

/* Get the state of a loader that runs alone, at this step. */
static int state_at(const struct refrain_config *c, unsigned step, uint8_t *out,
	size_t room)
{
	struct refrain_config lone = alone(*c);
	struct refrain_loader *l = open_loader(&lone);
	int n = refrain_save_at(l, step, out, room);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	return n;
}

static void seek_simple(struct simple *r, uint64_t step)
{
	ck_assert_int_eq(schedule_seek(&r->schedule, &r->cursor, step), 0);
	r->step = step;
}

START_TEST(test_a_job_restored_far_ahead_is_refused_or_goes_alone)
{
	struct refrain_config c = solo_config(0), ahead;
	uint8_t state[REFRAIN_STATE_MAX];
	struct refrain_loader *l;
	struct job j[2];

	ahead = c;
	ahead.state_bytes = (size_t)state_at(&c, 40, state, sizeof(state));
	ahead.state = state;
	open_job(&j[0], c, false);
	steps_of(&j[0], 2);
	ck_assert_int_eq(refrain_open(&l, &ahead), -ESTALE);
	ck_assert_msg(strstr(refrain_message(NULL),
			      "this job's state is at "
			      "step 40"),
		"%s", refrain_message(NULL));
	open_job(&j[1], ahead, true);
	seek_simple(&j[1].r, 40);
	steps_of(&j[1], 2);
	ck_assert_uint_eq(stats_of(j[1].l).share_solo, 1);
	steps_of(&j[0], 40);
	catch_up(j, 2);
	run_out(j, 2);
	for (int i = 0; i < 2; i++)
		close_job(&j[i]);
}
END_TEST

START_TEST(test_the_one_ahead_is_refused_when_the_share_begins)
{
	struct refrain_config c = solo_config(2), ahead = c;
	uint8_t state[REFRAIN_STATE_MAX];
	const struct refrain_batch *b;
	struct refrain_loader *l;
	struct job j;

	ahead.state_bytes = (size_t)state_at(&c, 40, state, sizeof(state));
	ahead.state = state;
	l = open_loader(&ahead);
	open_job(&j, c, false);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), -ESTALE);
	ck_assert_msg(strstr(refrain_message(l), "is at step 0"), "%s",
		refrain_message(l));
	while (step_of(j.l, &j.r) > 0)
		;
	close_job(&j);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_what_solo_cannot_do_is_refused)
{
	struct refrain_config c = solo_config(0);
	struct refrain_loader *l;

	c.share_slow = REFRAIN_SHARE_SOLO;
	c.echo = REFRAIN_ECHO_AUTO;
	ck_assert_int_eq(refrain_open(&l, &c), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "share_slow"));
}
END_TEST

/* -- A host that hangs ----------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* For the pthread_create() of this program, which replaces that of the C
 * library. It can fail in the test's own thread, and hang in the thread that
 * was started before. */
static struct {
	_Atomic bool armed, hung, let_go;
	pthread_t own;
	_Atomic unsigned seen, fail_at;
} threads;

__attribute__((visibility("default"))) int pthread_create(pthread_t *out,
	const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	union {
		void *symbol;
		int (*call)(pthread_t *, const pthread_attr_t *,
			void *(*)(void *), void *);
	} real = {.symbol = dlsym(RTLD_NEXT, "pthread_create")};
	const struct timespec nap = {.tv_nsec = NS_PER_MS};
	bool own = threads.armed && pthread_equal(threads.own, pthread_self());

	if (own && ++threads.seen == threads.fail_at) {
		/* wait until the host is inside the call */
		while (!threads.hung)
			(void)nanosleep(&nap, NULL);
		return EAGAIN;
	}
	if (threads.fail_at && threads.seen + 1 >= threads.fail_at && !own) {
		threads.hung = true;
		while (!threads.let_go)
			(void)nanosleep(&nap, NULL);
	}
	return real.call(out, attr, run, arg);
}

/* valgrind reports it if memory is freed too early. */
START_TEST(test_a_host_that_hangs_keeps_what_it_looks_at)
{
	struct refrain_config c = solo_config(0);
	struct refrain_loader *l;
	struct job j;

	look_for_no_leaks();
	threads.own = pthread_self();
	threads.armed = true;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_close(l), 0);
	/* let the start of the thread after the host's fail */
	threads.fail_at = threads.seen;
	threads.seen = 0;
	ck_assert_int_eq(refrain_open(&l, &c), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "thread"));
	threads.let_go = true;
	threads.armed = false;
	/* this succeeds when the host that was left behind has ended */
	open_job(&j, c, false);
	while (step_of(j.l, &j.r) > 0)
		;
	close_job(&j);
}
END_TEST
#endif

static Suite *suite(void)
{
	Suite *s = suite_create("shared_solo");
	TCase *t = case_with(s, "solo", make_all, remove_all);

	tcase_add_loop_test(
		t, test_a_slow_job_goes_on_alone_and_comes_back, 0, 2);
	tcase_add_loop_test(t,
		test_a_pause_at_the_end_of_an_epoch_has_a_limit_of_its_own,
		PAUSE_IN_GRACE, PAUSE_TOO_LONG + 1);
	tcase_add_test(t, test_a_job_that_is_alone_comes_back_to_the_next_host);
	tcase_add_test(t, test_a_job_that_passes_the_others_waits_for_them);
	tcase_add_test(
		t, test_a_job_that_is_alone_ends_its_run_without_the_others);
	tcase_add_test(
		t, test_a_job_restored_far_ahead_is_refused_or_goes_alone);
	tcase_add_test(t, test_the_one_ahead_is_refused_when_the_share_begins);
	tcase_add_test(t, test_what_solo_cannot_do_is_refused);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	t = case_with(s, "hangs", make_all, remove_all);
	tcase_add_test(t, test_a_host_that_hangs_keeps_what_it_looks_at);
#endif
	return s;
}

int main(void)
{
	return run_suite(suite());
}
