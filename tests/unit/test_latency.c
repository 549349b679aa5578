/* SPDX-License-Identifier: MIT */
/* Tests of common/base/latency: histograms, and what many threads add. */
#include <pthread.h>
#include <stdbool.h>

#include "common/base/clock.h"
#include "common/base/latency.h"
#include "suite.h"

#define THREADS 8
#define ADDS 10000

START_TEST(test_latency_puts_each_duration_into_the_bucket_of_its_bound)
{
	uint64_t bound_ns;

	ck_assert_uint_eq(latency_bucket(0), 0);
	for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++) {
		bound_ns = latency_bound_us(i) * NS_PER_US;
		ck_assert_uint_eq(latency_bucket(bound_ns), i);
		ck_assert_uint_eq(latency_bucket(bound_ns + 1), i + 1);
	}
	ck_assert_uint_eq(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
	ck_assert_uint_gt(latency_bound_us(LATENCY_BUCKETS - 2), 120000000);
}
END_TEST

START_TEST(test_latency_without_a_histogram_counts_nothing)
{
	latency_add(NULL, LATENCY_TIER, 1);
	latency_free(NULL);
}
END_TEST

static void *add_many(void *arg)
{
	for (unsigned i = 0; i < ADDS; i++)
		latency_add(arg, LATENCY_PEER, NS_PER_MS);
	return NULL;
}

/* Start threads that add durations, one after another or at once. */
static void run_threads(struct latency *l, bool at_once)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, add_many, l), 0);
		if (!at_once)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; at_once && i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

START_TEST(test_latency_loses_nothing_of_threads_that_have_ended)
{
	unsigned bucket = latency_bucket(NS_PER_MS);
	struct latency_sum sum;
	struct latency *l;

	ck_assert_int_eq(latency_new(&l), 0);
	for (unsigned i = 1; i <= 4; i++) {
		run_threads(l, i % 2 == 0);
		latency_read(l, LATENCY_PEER, &sum);
		ck_assert_uint_eq(
			sum.count[bucket], (uint64_t)i * THREADS * ADDS);
		ck_assert_uint_eq(sum.ns, sum.count[bucket] * NS_PER_MS);
	}
	latency_read(l, LATENCY_TIER, &sum);
	ck_assert_uint_eq(sum.count[bucket] + sum.ns, 0);
	latency_free(l);
}
END_TEST

START_TEST(test_latency_quantiles_are_inside_the_bucket)
{
	uint64_t count[LATENCY_BUCKETS] = {0};

	ck_assert_uint_eq(latency_quantile_us(count, 0.5), 0);
	count[2] = 100; /* bucket 2 is 32 to 64 us */
	ck_assert_uint_eq(latency_quantile_us(count, 0.5), 48);
	ck_assert_uint_eq(latency_quantile_us(count, 1), 64);
	count[10] = 100;
	ck_assert_uint_eq(latency_quantile_us(count, 0.25), 48);
	ck_assert_uint_gt(
		latency_quantile_us(count, 0.51), latency_bound_us(9));
	ck_assert_uint_eq(latency_quantile_us(count, 1), latency_bound_us(10));
	count[LATENCY_BUCKETS - 1] = 1000;
	ck_assert_uint_eq(latency_quantile_us(count, 0.99),
		latency_bound_us(LATENCY_BUCKETS - 2));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("latency");
	TCase *t = case_of(s, "latency");

	tcase_add_test(t,
		test_latency_puts_each_duration_into_the_bucket_of_its_bound);
	tcase_add_test(t, test_latency_without_a_histogram_counts_nothing);
	tcase_add_test(
		t, test_latency_loses_nothing_of_threads_that_have_ended);
	tcase_add_test(t, test_latency_quantiles_are_inside_the_bucket);
	return run_suite(s);
}
