/* SPDX-License-Identifier: MIT */
/* Tests of the segments of an analysis: what is skipped, what is measured, and
 * when a segment ends. */
#include <math.h>
#include <stdint.h>

#include "analysis/study/copy_rate_impl.h"
#include "analysis/study/repeats_impl.h"
#include "analysis/study/segment_impl.h"
#include "suite.h"

/* Returns the rate in samples per second at a time of the segment. */
typedef double rate_fn(double at_s);

static uint64_t state;

static double noise(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static double even(double at_s)
{
	(void)at_s;
	return 1000;
}

static double late(double at_s)
{
	return at_s < 5 ? 0 : 1000;
}

static double noisy(double at_s)
{
	(void)at_s;
	return 1000 * (1 + noise());
}

/* Returns the length of a segment of at most 20 s, which looks every 25 ms. */
static double run_through(struct segment *s, rate_fn *rate, double epoch)
{
	struct counts n = {.time_s = 100};
	double pause_s = 0, was_s = 0;

	state = 3;
	segment_begin(s, &n, 20, epoch);
	do {
		double at_s = n.time_s - 100;

		ck_assert_double_lt(at_s, 21);
		n.time_s += 0.025;
		n.samples += 0.025 * rate(at_s);
		n.misses += 1;
		n.hits += 3;
		/* A pause is counted when it has ended. */
		pause_s = rate(at_s) > 0 ? 0 : pause_s + 0.025;
		if (pause_s == 0 && was_s > 1)
			n.idle_s += was_s;
		was_s = pause_s;
	} while (!segment_add(s, &n));
	return n.time_s - 100;
}

START_TEST(test_a_segment_of_an_even_rate_ends_early)
{
	struct segment s;
	double took_s = run_through(&s, even, 1e6);

	ck_assert_double_gt(took_s, 3);
	ck_assert_double_lt(took_s, 15);
	ck_assert_double_eq_tol(segment_rate(&s).value, 1000, 1e-6);
	ck_assert_double_lt(segment_rate(&s).ci, 1);
	ck_assert_double_eq_tol(segment_miss(&s), 0.25, 1e-9);
	ck_assert_double_eq_tol(segment_gaps(&s), 0, 1e-6);
}
END_TEST

START_TEST(test_a_slow_beginning_is_skipped)
{
	struct segment s;

	(void)run_through(&s, late, 0);
	ck_assert_double_eq_tol(segment_rate(&s).value, 1000, 1e-6);
}
END_TEST

START_TEST(test_noise_shows_in_the_interval)
{
	struct segment s;
	double took_s = run_through(&s, noisy, 1e6);
	struct profile_rate r = segment_rate(&s);

	ck_assert_double_le(took_s, 20.6);
	ck_assert_double_gt(r.ci, 1);
	ck_assert_double_eq_tol(r.value, 1000, 2 * r.ci);
}
END_TEST

/* Batches of 32 samples; the samples of a batch are read at once. */
static double step_s;

static double steps(double at_s)
{
	return 32 * (floor((at_s + 0.025) / step_s) - floor(at_s / step_s)) /
		0.025;
}

START_TEST(test_few_steps_tell_the_rate)
{
	static const double length_s[] = {
		0.1317, 0.3117, 0.5317, 0.9717, 1.517};
	struct segment s;

	step_s = length_s[_i];
	(void)run_through(&s, steps, 1e6);
	ck_assert_double_eq_tol(segment_rate(&s).value * step_s / 32, 1, 0.01);
	ck_assert_double_lt(segment_rate(&s).ci * step_s / 32, 0.03);
}
END_TEST

/* Epochs of 2 s, with half a second without reads in each. */
static double paused(double at_s)
{
	return fmod(at_s, 2) < 0.5 ? 0 : 1000;
}

START_TEST(test_whole_epochs_are_measured)
{
	struct segment s;

	(void)run_through(&s, paused, 1500);
	ck_assert_double_eq_tol(segment_rate(&s).value, 750, 2);
	ck_assert_double_lt(segment_rate(&s).ci, 10);
}
END_TEST

/* A batch is read in 0.7 s, and computed in 2.3 s. */
static double batches(double at_s)
{
	return fmod(at_s, 3) < 0.7 ? 1000 : 0;
}

START_TEST(test_pauses_of_steps_are_no_gaps)
{
	struct segment s;

	(void)run_through(&s, batches, 1e6);
	ck_assert_double_eq_tol(segment_gaps(&s), 0, 1e-6);
}
END_TEST

/* One of the pauses is long. */
static double validates(double at_s)
{
	return at_s > 10 && at_s < 18 ? 0 : batches(at_s);
}

START_TEST(test_a_pause_much_longer_than_those_of_steps_is_a_gap)
{
	struct segment s;
	double measured_s;

	(void)run_through(&s, validates, 1e6);
	measured_s = s.last.time_s - s.end[0].time_s;
	/* The gaps from the end of the batch at 9 s to the end of the batch at
	 * 18 s. */
	ck_assert_double_eq_tol(segment_gaps(&s) * measured_s, 8.3, 0.1);
}
END_TEST

/* Epochs of 3 s, and then 1.5 s of other work. */
static double epochs(double at_s)
{
	return fmod(at_s, 4.5) < 3 ? 1000 : 0;
}

START_TEST(test_pauses_after_each_epoch_are_gaps)
{
	struct segment s;

	(void)run_through(&s, epochs, 3000);
	ck_assert_double_eq_tol(segment_gaps(&s), 1.0 / 3, 0.02);
}
END_TEST

/* -- Repeats --------------------------------------------------------------- */

#define RUNS 2000

/* Returns an approximately normal random number, with mean 0 and standard
 * deviation 1. */
static double deviate(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += noise();
	return sum;
}

/* Returns the share of later measurements for which the interval contains the
 * true rate. */
static double covered(double sd, unsigned pairs)
{
	unsigned inside = 0;

	state = 5;
	for (unsigned i = 0; i < RUNS; i++) {
		struct repeats r = {0};

		for (unsigned k = 0; k < pairs; k++) {
			double first = exp(sd * deviate());

			repeats_add(&r, first, exp(sd * deviate()));
		}
		inside += fabs(sd * deviate()) <= repeats_interval(&r);
	}
	return (double)inside / RUNS;
}

START_TEST(test_a_later_measurement_lies_in_the_interval_of_repeats)
{
	for (unsigned pairs = 2; pairs <= 5; pairs++) {
		ck_assert_double_gt(covered(0.005, pairs), 0.95);
		ck_assert_double_gt(covered(0.02, pairs), 0.90);
		ck_assert_double_gt(covered(0.05, pairs), 0.87);
		/* The interval is not much too wide, either. */
		ck_assert_double_lt(covered(0.05, pairs), 0.975);
	}
}
END_TEST

/* -- The source ------------------------------------------------------------ */

/* Copy with a look every fifth of a second. The rate is 100 bytes a second, and
 * `later` from change_s on. Returns copied_change() at the end. */
static double change_after(double took_s, double change_s, double later)
{
	struct copied c = {.n = 0};
	double bytes = 0;

	for (double at_s = 0.2; at_s < took_s; at_s += 0.2) {
		bytes += 0.2 * (at_s <= change_s ? 100 : later);
		copied_add(&c, at_s, bytes);
		/* no bytes have come since the last look */
		copied_add(&c, at_s + 0.1, bytes);
	}
	return copied_change(&c);
}

START_TEST(test_a_source_that_gets_slower_or_faster_is_seen)
{
	ck_assert_double_eq_tol(change_after(8, 4, 100), 1, 0.02);
	ck_assert_double_eq_tol(change_after(8, 4, 20), 0.2, 0.02);
	ck_assert_double_eq_tol(change_after(300, 200, 300), 3, 0.1);
	ck_assert_double_eq_tol(change_after(300, 2, 20), 0.79, 0.02);
	ck_assert_double_eq(change_after(4, 2, 20), 1);
	ck_assert_double_eq(change_after(0, 0, 0), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("segment");
	TCase *t = case_of(s, "segment");

	tcase_add_test(t, test_a_segment_of_an_even_rate_ends_early);
	tcase_add_test(t, test_a_slow_beginning_is_skipped);
	tcase_add_test(t, test_noise_shows_in_the_interval);
	tcase_add_loop_test(t, test_few_steps_tell_the_rate, 0, 5);
	tcase_add_test(t, test_whole_epochs_are_measured);
	tcase_add_test(t, test_pauses_of_steps_are_no_gaps);
	tcase_add_test(
		t, test_a_pause_much_longer_than_those_of_steps_is_a_gap);
	tcase_add_test(t, test_pauses_after_each_epoch_are_gaps);
	tcase_add_test(t, test_a_source_that_gets_slower_or_faster_is_seen);
	tcase_add_test(
		t, test_a_later_measurement_lies_in_the_interval_of_repeats);
	return run_suite(s);
}
