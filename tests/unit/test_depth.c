/* SPDX-License-Identifier: MIT */
/* The depth of surplus requests against origins that are a formula. */
#include <stdlib.h>

#include "base/clock.h"
#include "cache/depth.h"
#include "suite.h"

#define REQUEST_BYTES 262144

/* Each request takes latency_ns; all together at most bytes_per_s. */
struct formula {
	double latency_ns, bytes_per_s;
};

static void run(struct depth *d, struct formula o, uint64_t *now_ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		double by_latency = o.latency_ns / depth_limit(d);
		double by_rate = REQUEST_BYTES * 1e9 / o.bytes_per_s;

		*now_ns +=
			(uint64_t)(by_latency > by_rate ? by_latency : by_rate);
		depth_note(d, REQUEST_BYTES, true, *now_ns);
	}
}

/* The share of answers at each depth, at the end of a long run. */
static unsigned usual_depth(struct formula o)
{
	unsigned seen[33] = {0};
	uint64_t now_ns = 1;
	unsigned usual = 1;
	struct depth d;

	depth_init(&d);
	run(&d, o, &now_ns, 2000);
	for (int i = 0; i < 4000; i++) {
		run(&d, o, &now_ns, 1);
		seen[depth_limit(&d)]++;
	}
	for (unsigned i = 1; i <= 32; i++)
		if (seen[i] > seen[usual])
			usual = i;
	return usual;
}

START_TEST(test_an_origin_that_one_request_fills_is_asked_for_one)
{
	/* 50 MB/s: 5 ms a request, of which 1 is latency. */
	ck_assert_uint_eq(usual_depth((struct formula){1e6, 50e6}), 1);
}
END_TEST

START_TEST(test_a_distant_origin_is_asked_for_as_much_as_it_takes)
{
	/* 100 ms and 50 MB/s: 20 requests fill it. */
	ck_assert_uint_eq(usual_depth((struct formula){100e6, 50e6}), 32);
	/* 20 ms and 50 MB/s: 4 nearly do. */
	ck_assert_uint_eq(usual_depth((struct formula){20e6, 50e6}), 4);
	/* No limit but latency: as deep as it goes. */
	ck_assert_uint_eq(usual_depth((struct formula){5e6, 1e12}), 32);
}
END_TEST

START_TEST(test_an_origin_that_changes_is_followed)
{
	uint64_t now_ns = 1;
	struct depth d;

	depth_init(&d);
	run(&d, (struct formula){1e6, 50e6}, &now_ns, 3000);
	ck_assert_uint_le(depth_limit(&d), 2);
	run(&d, (struct formula){100e6, 50e6}, &now_ns, 20000);
	ck_assert_uint_ge(depth_limit(&d), 16);
}
END_TEST

START_TEST(test_times_when_we_did_not_ask_do_not_count)
{
	uint64_t now_ns = 1;
	struct depth d;
	unsigned before;

	depth_init(&d);
	run(&d, (struct formula){1e6, 50e6}, &now_ns, 3000);
	before = d.level;
	for (int i = 0; i < 1000; i++) {
		now_ns += NS_PER_S;
		depth_note(&d, REQUEST_BYTES, false, now_ns);
	}
	ck_assert_uint_eq(d.level, before);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("depth");
	TCase *t = case_of(s, "depth");

	tcase_add_test(
		t, test_an_origin_that_one_request_fills_is_asked_for_one);
	tcase_add_test(
		t, test_a_distant_origin_is_asked_for_as_much_as_it_takes);
	tcase_add_test(t, test_an_origin_that_changes_is_followed);
	tcase_add_test(t, test_times_when_we_did_not_ask_do_not_count);
	return run_suite(s);
}
