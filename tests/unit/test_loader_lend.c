/* SPDX-License-Identifier: MIT */
/* Tests of batches in the trainer's hands: lent, copied, released, the last. */
#include "loader_fixture.h"

#include <pthread.h>

#include "suite.h"

START_TEST(test_all_batches_lent_is_an_error_until_one_is_back)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *lent[8], *b;
	int n = 0, rc;

	c.batches_ahead = 3;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &lent[n], WAIT_MS)) == 1)
		ck_assert_int_lt(n++, 7);
	ck_assert_int_eq(rc, -EBUSY);
	ck_assert_int_eq(n, 4);
	ck_assert_ptr_nonnull(strstr(refrain_message(l), "release"));
	refrain_release(lent[2]);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	ck_assert_uint_eq(b->step, 4);
	refrain_release(b);
	for (int i = 0; i < n; i++)
		if (i != 2)
			refrain_release(lent[i]);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

static unsigned allocated;

static void *count_alloc(void *ctx, size_t bytes)
{
	(*(unsigned *)ctx)++;
	return aligned_alloc(64, bytes);
}

static void count_free(void *ctx, void *p, size_t bytes)
{
	ck_assert_uint_gt(bytes, 0);
	(*(unsigned *)ctx)--;
	free(p);
}

START_TEST(test_batches_outlive_the_loader_in_the_caller_s_memory)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *a, *b;
	uint8_t *copy;

	c.alloc = count_alloc;
	c.free = count_free;
	c.alloc_ctx = &allocated;
	l = open_loader(&c);
	ck_assert_uint_eq(allocated, 5);
	ck_assert_int_eq(refrain_next(l, &a, WAIT_MS), 1);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	copy = malloc(a->data_bytes);
	memcpy(copy, a->data, a->data_bytes);
	ck_assert_uint_eq((uintptr_t)a->data % 64, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_uint_eq(allocated, 2);
	ck_assert(memcmp(copy, a->data, a->data_bytes) == 0);
	ck_assert_int_eq(a->status[0], 0);
	refrain_release(b);
	ck_assert_uint_eq(allocated, 1);
	refrain_release(a);
	ck_assert_uint_eq(allocated, 0);
	free(copy);
}
END_TEST

START_TEST(test_next_into_gives_what_next_does)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c), *m = open_loader(&c);
	const struct refrain_batch *b;
	size_t bytes = (size_t)c.batch * SIDE * SIDE * 3;
	uint8_t *data = malloc(bytes);
	int64_t labels[16];
	int n;

	ck_assert_int_eq(
		refrain_next_into(m, data, bytes - 1, labels, 16, WAIT_MS),
		-ENOSPC);
	ck_assert_int_eq(refrain_next_into(m, data, bytes, labels, 15, WAIT_MS),
		-ENOSPC);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		n = refrain_next_into(m, data, bytes, labels, 16, WAIT_MS);
		ck_assert_int_eq(n, (int)b->count);
		ck_assert(memcmp(data, b->data, b->data_bytes) == 0);
		ck_assert(memcmp(labels, b->labels, b->count * 8) == 0);
		refrain_release(b);
	}
	ck_assert_int_eq(
		refrain_next_into(m, data, bytes, NULL, 0, WAIT_MS), 0);
	ck_assert_uint_eq(stats_of(l).stream_hash, stats_of(m).stream_hash);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(refrain_close(m), 0);
	free(data);
}
END_TEST

static void *release_later(void *b)
{
	refrain_release(b);
	return NULL;
}

START_TEST(test_any_thread_releases)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	pthread_t t;
	uint64_t n = 0;

	c.epochs = 4;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		n += b->count;
		ck_assert_int_eq(pthread_create(&t, NULL, release_later,
					 (void *)(uintptr_t)b),
			0);
		ck_assert_int_eq(pthread_join(t, NULL), 0);
	}
	ck_assert_uint_eq(n, 4 * IMAGES);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_last_short_batch_is_dropped_if_asked)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	uint64_t steps;

	c.last = REFRAIN_LAST_DROP;
	l = open_loader(&c);
	steps = refrain_steps_left(l);
	ck_assert_uint_eq(steps, IMAGES / 16);
	for (uint64_t i = 0; i < steps; i++) {
		ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
		ck_assert_uint_eq(b->count, 16);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 0);
	ck_assert_uint_eq(stats_of(l).dropped_examples, IMAGES % 16);
	ck_assert_uint_eq(stats_of(l).files_read, IMAGES - IMAGES % 16);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_echoes_of_a_dropped_last_batch_are_counted)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	uint64_t served;

	c.last = REFRAIN_LAST_DROP;
	c.echo = 1.5;
	l = open_loader(&c);
	served = refrain_steps_left(l) * 16;
	ck_assert_uint_eq(
		served + stats_of(l).dropped_examples, IMAGES + IMAGES / 2);
	ck_assert_int_eq(refrain_close(l), 0);
	c.echo_point = REFRAIN_ECHO_BATCH;
	c.echo = 3;
	l = open_loader(&c);
	served = refrain_steps_left(l) * 16;
	ck_assert_uint_eq(served + stats_of(l).dropped_examples, 3 * IMAGES);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("loader_lend");
	TCase *tc = case_of(s, "lending");

	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_test(tc, test_all_batches_lent_is_an_error_until_one_is_back);
	tcase_add_test(
		tc, test_batches_outlive_the_loader_in_the_caller_s_memory);
	tcase_add_test(tc, test_next_into_gives_what_next_does);
	tcase_add_test(tc, test_any_thread_releases);
	tcase_add_test(tc, test_last_short_batch_is_dropped_if_asked);
	tcase_add_test(tc, test_echoes_of_a_dropped_last_batch_are_counted);
	return run_suite(s);
}
