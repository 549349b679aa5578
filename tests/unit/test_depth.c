/* SPDX-License-Identifier: MIT */
/* The depth of surplus requests against origins that are a formula. */
#include <stdlib.h>

#include "base/clock.h"
#include "cache/depth_impl.h"
#include "suite.h"

#define REQUEST_BYTES 262144
#define MOST 64

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
		/* Those that wait for one another take longer. */
		depth_note(d,
			&(struct depth_answer){.bytes = REQUEST_BYTES,
				.took_ns = (uint64_t)(depth_limit(d) *
					(by_latency > by_rate ? by_latency
							      : by_rate)),
				.now_ns = *now_ns,
				.surplus = true,
				.busy = true});
	}
}

/* The share of answers at each depth, at the end of a long run. */
static unsigned usual_depth(struct formula o)
{
	unsigned seen[MOST + 1] = {0};
	uint64_t now_ns = 1;
	unsigned usual = 1;
	struct depth d;

	depth_init(&d, MOST);
	run(&d, o, &now_ns, 2000);
	for (int i = 0; i < 4000; i++) {
		run(&d, o, &now_ns, 1);
		seen[depth_limit(&d)]++;
	}
	for (unsigned i = 1; i <= MOST; i++)
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
	/* No limit but latency: as deep as is of use. */
	ck_assert_uint_eq(usual_depth((struct formula){5e6, 1e12}), MOST);
}
END_TEST

START_TEST(test_an_origin_that_changes_is_followed)
{
	uint64_t now_ns = 1;
	struct depth d;

	depth_init(&d, MOST);
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

	depth_init(&d, MOST);
	run(&d, (struct formula){1e6, 50e6}, &now_ns, 3000);
	before = d.level;
	for (int i = 0; i < 1000; i++) {
		now_ns += NS_PER_S;
		depth_note(&d,
			&(struct depth_answer){.bytes = REQUEST_BYTES,
				.took_ns = NS_PER_MS,
				.now_ns = now_ns,
				.surplus = true});
	}
	ck_assert_uint_eq(d.level, before);
}
END_TEST

/* How long the depth has less than nearly the best rate, of a long time. */
static uint64_t search_ns(struct formula o)
{
	uint64_t now_ns = 1, bad_ns = 0;
	struct depth d;

	depth_init(&d, MOST);
	while (now_ns < 100 * NS_PER_S) {
		uint64_t before_ns = now_ns;
		unsigned limit = depth_limit(&d);
		double by_rate = REQUEST_BYTES * 1e9 / o.bytes_per_s;
		double best = o.latency_ns / MOST;

		run(&d, o, &now_ns, 1);
		best = best > by_rate ? best : by_rate;
		if (o.latency_ns / limit * 0.95 > best)
			bad_ns += now_ns - before_ns;
	}
	return bad_ns;
}

START_TEST(test_the_depth_is_found_soon)
{
	static const double latency_ms[] = {1, 10, 100, 200, 500, 1000};

	for (unsigned i = 0; i < sizeof(latency_ms) / sizeof(double); i++)
		for (double rate = 1e6; rate < 1e12; rate *= 7) {
			uint64_t most_ns = (uint64_t)(latency_ms[i] * 20e6);
			struct formula o = {latency_ms[i] * 1e6, rate};

			if (most_ns < 2 * NS_PER_S)
				most_ns = 2 * NS_PER_S;
			ck_assert_uint_le(search_ns(o), most_ns);
		}
}
END_TEST

START_TEST(test_what_readers_are_given_does_not_hide_a_gain)
{
	uint64_t now_ns = 1;
	struct depth d;

	/* 16 readers have 16 requests at 100 ms; ours are added to that. */
	depth_init(&d, MOST);
	for (int i = 0; i < 2000; i++) {
		struct depth_answer a = {.bytes = REQUEST_BYTES,
			.took_ns = 100 * NS_PER_MS,
			.busy = true};

		now_ns += 100 * NS_PER_MS / (depth_limit(&d) + 16);
		a.now_ns = now_ns;
		a.surplus = i % (int)(depth_limit(&d) + 16) >= 16;
		depth_note(&d, &a);
	}
	ck_assert_uint_eq(depth_limit(&d), MOST);
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
	tcase_add_test(t, test_the_depth_is_found_soon);
	tcase_add_test(t, test_what_readers_are_given_does_not_hide_a_gain);
	tcase_add_test(t, test_times_when_we_did_not_ask_do_not_count);
	return run_suite(s);
}
