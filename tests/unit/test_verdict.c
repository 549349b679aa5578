/* SPDX-License-Identifier: MIT */
/*
 * The bottleneck that a profile names, and the times of readers that decide it.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/study/study.h"
#include "analysis/study/waits_impl.h"
#include "suite.h"

/* A profile of which only the rates are known. They are equal within their
 * intervals. */
static const struct profile noisy = {
	.source_bytes = 50000000,
	.source_items = 500,
	.samples = 500,
	.cpus = 2,
	.g = {100, 20},
	.g_bound = true,
	.r1 = {100, 20},
	.r0 = {93, 20},
	.s = {900, 0},
	.points = {{1, 0, {100, 20}}, {0, 1, {93, 20}}},
	.npoints = 2,
};

/* Returns the times of readers that are busy for `busy` of every 10 ms. */
static struct profile_waits times(double busy)
{
	return (struct profile_waits){500, 0.010, 0.010 * busy, 0.1};
}

static void expect_limit(const struct profile *p, enum profile_limit limit)
{
	ck_assert_str_eq(profile_limit_name(profile_limit(p, NULL)),
		profile_limit_name(limit));
}

START_TEST(test_a_difference_within_its_interval_is_undecided)
{
	struct profile p = noisy;
	enum profile_limit likely;

	ck_assert_int_eq(profile_limit(&p, &likely), LIMIT_UNKNOWN);
	ck_assert_int_eq(likely, LIMIT_FETCH);
	/* The verdict stays undecided in a saved profile, and the report says
	 * so. */
	p.r0.value = 70;
	expect_limit(&p, LIMIT_UNKNOWN);
	p.r0 = (struct profile_rate){30, 1};
	expect_limit(&p, LIMIT_FETCH);
}
END_TEST

START_TEST(test_readers_that_wait_mostly_show_that_compute_limits)
{
	struct profile p = noisy;

	p.readers = 2;
	p.warm = times(0.2);
	p.cold = times(0.3);
	expect_limit(&p, LIMIT_COMPUTE);
}
END_TEST

START_TEST(test_a_noisy_rate_makes_no_bound_exact)
{
	struct profile p = noisy;

	p.readers = 16;
	p.warm = times(0.5);
	p.delay = (struct profile_rate){11, 1};
	p.r1.ci = 190;
	profile_use_readers(&p);
	ck_assert(p.g_bound);
	p.r1.ci = 5;
	profile_use_readers(&p);
	ck_assert(!p.g_bound);
}
END_TEST

START_TEST(test_readers_that_contradict_the_rates_are_undecided)
{
	struct profile p = noisy;
	enum profile_limit likely;

	p.readers = 2;
	p.warm = times(0.2);
	p.cold = times(0.3);
	p.r0 = (struct profile_rate){40, 3};
	ck_assert_int_eq(profile_limit(&p, &likely), LIMIT_UNKNOWN);
	ck_assert_int_eq(likely, LIMIT_FETCH);
	/* The interval of the rate contains the value that the readers show. */
	p.r0.ci = 25;
	expect_limit(&p, LIMIT_COMPUTE);
	/* The source costs no time, whatever the readers wait for. */
	p.delay = (struct profile_rate){0.9, 0.15};
	p.warm = times(0.1);
	p.cold = (struct profile_waits){500, 0.040, 0.032, 0.1};
	p.r0 = (struct profile_rate){60, 20};
	expect_limit(&p, LIMIT_FETCH);
	p.r1 = p.r0 = (struct profile_rate){100, 1};
	expect_limit(&p, LIMIT_UNKNOWN);
}
END_TEST

START_TEST(test_busy_readers_show_preparation_if_delays_cost_time)
{
	struct profile p = noisy;

	p.readers = 2;
	p.warm = p.cold = times(1);
	expect_limit(&p, LIMIT_UNKNOWN);
	p.delay = (struct profile_rate){0.9, 0.15};
	expect_limit(&p, LIMIT_PREP);
	ck_assert_str_eq(profile_verdict(&p), "moderately");
	/* A loader that is a batch ahead hides the delays. */
	p.delay.value = 0.1;
	expect_limit(&p, LIMIT_COMPUTE);
	/* The interval of the delays contains 0.5, so the delays prove nothing.
	 */
	p.delay = (struct profile_rate){0.6, 0.3};
	expect_limit(&p, LIMIT_UNKNOWN);
	p.warm.ran = 0.9;
	expect_limit(&p, LIMIT_PREP);
}
END_TEST

START_TEST(test_readers_that_wait_for_preparation_do_not_show_compute)
{
	struct profile p = noisy;

	p.readers = 8;
	p.warm = p.cold = times(0.2);
	p.r1 = p.r0 = p.points[0].rate = p.points[1].rate =
		(struct profile_rate){100, 1};
	p.g = (struct profile_rate){300, 3};
	p.g_bound = false;
	expect_limit(&p, LIMIT_PREP);
}
END_TEST

START_TEST(test_busy_readers_with_a_source_show_what_takes_longer)
{
	struct profile p = noisy;

	p.readers = 2;
	p.warm = times(1);
	p.warm.ran = 0.9;
	p.cold = (struct profile_waits){500, 0.030, 0.030, 0.3};
	expect_limit(&p, LIMIT_FETCH);
	p.cold.each_s = p.cold.busy_s = 0.014;
	expect_limit(&p, LIMIT_PREP);
	p.cold.each_s = p.cold.busy_s = 0.020;
	expect_limit(&p, LIMIT_UNKNOWN);
}
END_TEST

START_TEST(test_a_reader_that_also_computes_has_its_largest_part_named)
{
	struct profile p = noisy;

	p.readers = 1;
	p.warm = times(0.7);
	p.cold = times(0.7);
	expect_limit(&p, LIMIT_UNKNOWN);
	p.delay = (struct profile_rate){1, 0.15};
	expect_limit(&p, LIMIT_PREP);
	/* Computing takes 30 % of the time. */
	profile_use_readers(&p);
	ck_assert(!p.g_bound);
	ck_assert_double_eq_tol(p.g.value, 100 / 0.3, 0.1);
	/* A reader that is ahead waits, too, but its delays are hidden. */
	p = noisy;
	p.readers = 1;
	p.warm = p.cold = times(0.7);
	p.delay = (struct profile_rate){0, 0.15};
	expect_limit(&p, LIMIT_COMPUTE);
}
END_TEST

START_TEST(test_what_shows_the_bottleneck_is_saved)
{
	struct profile p = noisy, back;
	struct error err = {""};
	json_t *json;

	p.readers = 2;
	p.warm = p.cold = times(1);
	p.delay = (struct profile_rate){-0.05, 0.15};
	json = profile_json(&p);
	ck_assert_str_eq(json_string_value(json_object_get(json, "bottleneck")),
		"compute");
	ck_assert_int_eq(profile_parse(json, &back, &err), 0);
	json_decref(json);
	expect_limit(&back, LIMIT_COMPUTE);
	p.delay.ci = 0;
	json = profile_json(&p);
	ck_assert_str_eq(json_string_value(json_object_get(json, "bottleneck")),
		"undecided");
	ck_assert(json_object_get(json, "likely"));
	json_decref(json);
}
END_TEST

/* -- The report ------------------------------------------------------------ */

static char *report_of(const struct profile *p)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	profile_report(p, to);
	ck_assert_int_eq(fclose(to), 0);
	return text;
}

START_TEST(test_an_undecided_verdict_says_how_to_decide_it)
{
	struct profile p = noisy;
	char *text = report_of(&p);

	ck_assert_ptr_nonnull(strstr(text, "VERDICT: undecided"));
	ck_assert_ptr_nonnull(strstr(text, "measure again for longer"));
	ck_assert_ptr_null(strstr(text, "refrain mount"));
	ck_assert_ptr_null(strstr(text, "x the requests"));
	free(text);
}
END_TEST

START_TEST(test_advice_is_a_command_and_the_cheapest_comes_first)
{
	struct profile p = noisy;
	const char *workers, *cache;
	char *text;

	p.readers = 2;
	p.g = (struct profile_rate){400, 4};
	p.g_bound = false;
	p.r1 = p.points[0].rate = (struct profile_rate){380, 4};
	p.r0 = p.points[1].rate = (struct profile_rate){40, 1};
	text = report_of(&p);
	ck_assert_ptr_nonnull(strstr(text, "source: num_workers=4"));
	workers = strstr(text, "twice the workers");
	cache = strstr(text, "refrain mount SOURCE MOUNTPOINT --cache DIR:");
	ck_assert(workers && cache && workers < cache);
	ck_assert_ptr_nonnull(strstr(text, "refrain load SOURCE --echo auto"));
	free(text);
	/* If preparation is the limit, the report has other advice. */
	p = noisy;
	p.readers = 2;
	p.warm = p.cold = times(1);
	p.delay = (struct profile_rate){1, 0.15};
	text = report_of(&p);
	ck_assert_ptr_nonnull(strstr(text, "more workers: num_workers=4"));
	ck_assert_ptr_null(strstr(text, "x the requests"));
	free(text);
}
END_TEST

/* -- Times of readers ------------------------------------------------------ */

static void add_times(struct waits *w, unsigned at, double n, double each_s)
{
	w->count[at] += n;
	w->length_s[at] += n * each_s;
}

START_TEST(test_a_wait_for_each_batch_is_told_from_preparation)
{
	struct waits w = {.ran_s = 0.3};
	struct profile_waits p;

	add_times(&w, 80, 75, 0.004);
	add_times(&w, 90, 15, 0.010);
	p = waits_of(&w);
	ck_assert_double_eq_tol(p.busy_s, p.each_s, 1e-9);
	add_times(&w, 120, 6, 0.204);
	p = waits_of(&w);
	ck_assert_double_eq_tol(p.n, 96, 1e-9);
	ck_assert_double_eq_tol(p.busy_s, 0.005, 1e-9);
	ck_assert_double_eq_tol(p.each_s, (0.45 + 6 * 0.204) / 96, 1e-9);
}
END_TEST

START_TEST(test_few_intervals_tell_nothing)
{
	struct waits w = {.ran_s = 0};

	add_times(&w, 80, 31, 0.004);
	ck_assert_double_eq_tol(waits_of(&w).n, 0, 1e-9);
	add_times(&w, 80, 1, 0.004);
	ck_assert_double_eq_tol(waits_of(&w).n, 32, 1e-9);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("verdict");
	TCase *t = case_of(s, "verdict");

	tcase_add_test(t, test_a_difference_within_its_interval_is_undecided);
	tcase_add_test(
		t, test_readers_that_wait_mostly_show_that_compute_limits);
	tcase_add_test(t, test_readers_that_contradict_the_rates_are_undecided);
	tcase_add_test(t, test_a_noisy_rate_makes_no_bound_exact);
	tcase_add_test(
		t, test_busy_readers_show_preparation_if_delays_cost_time);
	tcase_add_test(
		t, test_busy_readers_with_a_source_show_what_takes_longer);
	tcase_add_test(
		t, test_a_reader_that_also_computes_has_its_largest_part_named);
	tcase_add_test(t, test_what_shows_the_bottleneck_is_saved);
	tcase_add_test(t, test_an_undecided_verdict_says_how_to_decide_it);
	tcase_add_test(
		t, test_advice_is_a_command_and_the_cheapest_comes_first);
	tcase_add_test(t, test_a_wait_for_each_batch_is_told_from_preparation);
	tcase_add_test(t, test_few_intervals_tell_nothing);
	tcase_add_test(
		t, test_readers_that_wait_for_preparation_do_not_show_compute);
	return run_suite(s);
}
