/* SPDX-License-Identifier: MIT */
/*
 * Loaders that share batches of runs whose echo factor changes, and slices of
 * batches.
 */
#include "shared_fixture.h"

/* -- Slices ---------------------------------------------------------------- */

START_TEST(test_a_state_of_the_end_of_the_run_has_no_batch)
{
	struct refrain_config c = shared_config(0);
	uint8_t state[REFRAIN_STATE_MAX];
	const struct refrain_batch *b;
	struct refrain_loader *l;
	int n;

	/* 300 examples: the last shared batch has one slice */
	c.share_batch = 32;
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
	/* The factor becomes that of the other job when this job reaches the
	 * step of the change. */
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
	Suite *s = suite_create("shared-echo");
	TCase *t = case_with(s, "shared", make_all, remove_all);

	tcase_add_test(t, test_a_state_of_the_end_of_the_run_has_no_batch);
	tcase_add_test(t, test_a_job_that_holds_a_slice_of_each_batch_is_told);
	tcase_add_test(t, test_another_echo_log_is_refused);
	tcase_add_test(
		t, test_a_state_before_the_first_batch_of_a_late_job_is_right);
	tcase_add_test(t, test_the_echo_log_may_be_freed_after_open);
	tcase_add_test(
		t, test_a_late_job_knows_how_the_echo_factor_has_changed);
	tcase_add_test(t, test_jobs_that_are_restored_follow_the_next_change);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
