/* SPDX-License-Identifier: MIT */
/*
 * Tests of loaders that share batches: several in one process, one after the
 * other in one thread, compared with the simple loader byte for byte.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared_fixture.h"

#define JOBS_MAX 3

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

/* -- Statistics ------------------------------------------------------------ */

/* Check the counts of jobs. A job gets the new counts with the messages between
 * two batches. */
static void check_jobs_after_close(bool of_host)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l[2], *stays;
	const struct refrain_batch *b;

	c.epochs = 100; /* the run must not end before */
	for (int i = 0; i < 2; i++)
		l[i] = open_loader(&c);
	stays = l[of_host ? 1 : 0];
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(refrain_next(l[i], &b, WAIT_MS), 1);
		refrain_release(b);
		ck_assert_uint_eq(stats_of(l[i]).share_jobs, 2);
	}
	ck_assert_int_eq(refrain_close(l[of_host ? 0 : 1]), 0);
	while (stats_of(stays).share_jobs != 1) {
		ck_assert_int_eq(refrain_next(stays, &b, WAIT_MS), 1);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(stays), 0);
}

START_TEST(test_share_jobs_falls_when_a_job_leaves)
{
	check_jobs_after_close(_i);
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
	/* The host fills all of its slots. */
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
	refrain_release(b[1]); /* releasing twice must count once */
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

/* -- The end --------------------------------------------------------------- */

static atomic_int date_ahead_s;

/* The library calls this function in place of that of the C library. */
__attribute__((visibility("default"))) int clock_gettime(
	clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += atomic_load(&date_ahead_s);
	return rc;
}

/* The date goes back by an hour, which is longer than any wait. */
START_TEST(test_a_date_that_changes_leaves_no_thread_behind)
{
	struct refrain_config c = shared_config(1);
	struct refrain_loader *l = open_loader(&c);

	atomic_store(&date_ahead_s, -3600);
	ck_assert_int_eq(refrain_close(l), 0);
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
	tcase_add_loop_test(t, test_share_jobs_falls_when_a_job_leaves, 0, 2);
	tcase_add_test(t, test_a_batch_outlives_its_loader_and_its_host);
	tcase_add_test(t, test_a_batch_cannot_be_written_to);
	tcase_add_test(t, test_all_batches_lent_is_an_error);
	tcase_add_test(t, test_a_time_out_says_who_is_waited_for);
	tcase_add_test(t, test_jobs_go_on_from_their_states_at_different_steps);
	tcase_add_test(t, test_a_job_goes_on_among_the_last_echoes);
	tcase_add_test(t, test_a_date_that_changes_leaves_no_thread_behind);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
