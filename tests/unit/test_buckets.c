/* SPDX-License-Identifier: MIT */
/*
 * Buckets: how much padding is left, and what is refused. The random cases of
 * test_schedule.c have the rest.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/schedule/bucket.h"
#include "schedule_fixture.h"
#include "suite.h"

#define LENGTHS 100000
#define GROUP 256

/* Lengths of a log-normal distribution, by Box and Muller. */
static void fill_lengths(uint32_t *lengths, double sigma)
{
	struct dice d = {.state = 11};

	for (size_t i = 0; i < LENGTHS; i++) {
		double u = ((double)roll(&d, 1 << 30) + 1) / (1 << 30);
		double v = (double)roll(&d, 1 << 30) / (1 << 30);
		double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);

		lengths[i] = (uint32_t)(400 * exp(sigma * z)) + 1;
	}
}

/* The share of padding in two passes, if each global batch is padded to its
 * longest example. */
static double padding_of(
	const uint32_t *lengths, const struct buckets *buckets)
{
	struct schedule_config c = run_config(GROUP, "1");
	uint64_t at, sum = 0, padded = 0;
	struct schedule s;

	c.examples = LENGTHS;
	c.epochs = 2;
	c.window = 0;
	c.buckets = buckets;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	for (uint64_t f = 0; f + GROUP <= 2 * LENGTHS; f += GROUP) {
		uint32_t most = 0;

		for (uint64_t i = f; i < f + GROUP; i++) {
			struct schedule_slot slot;
			uint32_t length;

			ck_assert_int_eq(
				schedule_fresh(&s, i, &slot, &at), 0);
			length = lengths[slot.index];
			sum += length;
			most = length > most ? length : most;
		}
		padded += (uint64_t)most * GROUP;
	}
	return 1 - (double)sum / (double)padded;
}

START_TEST(test_buckets_pad_little)
{
	uint32_t *lengths = calloc(LENGTHS, sizeof(*lengths));
	struct buckets_config config = {.lengths = lengths,
		.examples = LENGTHS,
		.seed = 3,
		.batches = 64,
		.group = GROUP};
	struct buckets *b;
	double without, with;

	fill_lengths(lengths, 0.6);
	ck_assert_int_eq(buckets_new(&b, &config, NULL), 0);
	without = padding_of(lengths, NULL);
	with = padding_of(lengths, b);
	printf("padding: %.1f %% without buckets, %.1f %% with\n",
		100 * without, 100 * with);
	ck_assert(without > 0.4);
	ck_assert(with < 0.1);
	buckets_free(b);
	free(lengths);
}
END_TEST

START_TEST(test_what_buckets_cannot_serve_is_refused)
{
	uint32_t lengths[8] = {0};
	struct buckets_config config = {.lengths = lengths,
		.examples = 8,
		.batches = 2,
		.group = 4};
	struct schedule_config c = run_config(4, "1");
	uint8_t state[SCHEDULE_STATE_BYTES];
	struct schedule_restored restored;
	struct buckets *b;
	struct schedule s;
	struct error err;
	size_t size;

	c.examples = 8;
	ck_assert_int_eq(buckets_new(&b, &config, &err), 0);
	c.buckets = b;
	ck_assert_int_eq(schedule_init(&s, &c, &err), 0);
	size = schedule_save(&s, 1, state);
	c.echo.p = 2;
	ck_assert_int_eq(schedule_init(&s, &c, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "echo must be 1"));
	c.echo.p = 1;
	c.order = SCHEDULE_IN_ORDER;
	ck_assert_int_eq(schedule_init(&s, &c, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "leave out"));
	c.order = SCHEDULE_SHUFFLE;
	buckets_free(b);
	config.group = 6;
	ck_assert_int_eq(buckets_new(&b, &config, &err), 0);
	c.buckets = b;
	c.batch = 2;
	c.world = 3;
	ck_assert_int_eq(schedule_restore(&s, &c, state, size, &restored, &err),
		-EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "batch 4 and world 1"));
	buckets_free(b);
	config.batches = 1 << 30;
	ck_assert_int_eq(buckets_new(&b, &config, &err), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("buckets");
	TCase *t = case_of(s, "buckets");

	tcase_add_test(t, test_buckets_pad_little);
	tcase_add_test(t, test_what_buckets_cannot_serve_is_refused);
	return run_suite(s);
}
