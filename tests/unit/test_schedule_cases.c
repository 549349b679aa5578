/* SPDX-License-Identifier: MIT */
/*
 * The schedule, case by case: refusals, saved positions, how well echoes mix,
 * and the cost of a slot.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "schedule_fixture.h"
#include "suite.h"

START_TEST(test_echo_factors_are_read_as_the_loader_takes_them)
{
	static const char *const good[] = {"1", "2.5", "5/2", "1.125", "64",
		"10/4", "2.333", "2.3333333", "7/3", "2001/2000",
		"2.3333333333333335"};
	static const uint32_t p[] = {1, 5, 5, 9, 64, 5, 7, 7, 7, 1, 7};
	static const uint32_t q[] = {1, 2, 2, 8, 1, 2, 3, 3, 3, 1, 3};
	static const char *const bad[] = {"", "0", "0.99", "65", "-2", "2.",
		".5", "2.5.5", "2x", "2/", "1/2", "1/0", "99999999999", "1e1",
		"auto"};
	struct schedule_echo e;

	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
		ck_assert_int_eq(schedule_echo_parse(good[i], &e, NULL), 0);
		ck_assert_uint_eq(e.p, p[i]);
		ck_assert_uint_eq(e.q, q[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(schedule_echo_parse(bad[i], &e, NULL) == -EINVAL,
			"%s", bad[i]);
}
END_TEST

START_TEST(test_a_window_too_small_is_refused_with_the_size_that_would_do)
{
	struct schedule_config c = run_config(32, "4");
	struct schedule s;
	struct error err;

	ck_assert_uint_eq(
		schedule_min_window(32, c.echo, 1, SCHEDULE_BEFORE), 224);
	c.window = 223;
	ck_assert_int_eq(schedule_init(&s, &c, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "224"));
	c.window = 224;
	ck_assert_int_eq(schedule_init(&s, &c, &err), 0);
	c.window = 32;
	c.allow_small_window = true;
	ck_assert_int_eq(schedule_init(&s, &c, &err), 0);
	c.window = 31; /* a window that is smaller than a batch */
	ck_assert_int_eq(schedule_init(&s, &c, &err), -EINVAL);
}
END_TEST

START_TEST(test_the_default_window_is_never_refused)
{
	static const char *const echoes[] = {"1", "1.5", "8", "16", "64"};
	struct schedule s;

	for (uint32_t batch = 1; batch < 3001; batch = batch * 3 + 1)
		for (int i = 0; i < 5; i++) {
			struct schedule_config c = run_config(batch, echoes[i]);

			ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
			ck_assert_uint_ge(s.c.window, 16 * batch);
			ck_assert_uint_ge(s.c.window, 1024);
		}
}
END_TEST

START_TEST(test_nonsense_is_refused)
{
	struct schedule_config good = run_config(32, "2"), c;
	struct schedule s;

#define REFUSED(field, value)                                                  \
	do {                                                                   \
		c = good;                                                      \
		c.field = (value);                                             \
		ck_assert_int_eq(schedule_init(&s, &c, NULL), -EINVAL);        \
	} while (0)
	REFUSED(examples, 0);
	REFUSED(examples, SCHEDULE_GLOBAL_MAX + 1);
	REFUSED(epochs, SCHEDULE_GLOBAL_MAX);
	REFUSED(batch, 0);
	REFUSED(batch, SCHEDULE_BATCH_MAX + 1);
	REFUSED(rank, 1);
	REFUSED(lag, SCHEDULE_LAG_MAX + 1);
	REFUSED(window, SCHEDULE_WINDOW_MAX + 1);
	REFUSED(echo, ((struct schedule_echo){1, 2}));
	REFUSED(echo, ((struct schedule_echo){2, 0}));
	REFUSED(echo_max, ((struct schedule_echo){3, 2}));
	REFUSED(order, SCHEDULE_NEARBY); /* the size of a block is missing */
#undef REFUSED
}
END_TEST

/* --- streams --- */

START_TEST(test_without_echo_the_stream_is_the_plain_permutation)
{
	struct schedule_config c = run_config(64, "1");
	struct stream a = {0}, b = {0};
	struct schedule s;

	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	stream_run(&a, &s, 0);
	ck_assert_uint_eq(a.n, c.examples);
	for (uint64_t i = 0; i < a.n; i++) {
		ck_assert_uint_eq(a.slots[i].fresh, i);
		ck_assert_uint_eq(a.slots[i].echo, 0);
		ck_assert(a.slots[i].last);
	}
	/* With an echo factor, the fresh servings are the same and have the
	 * same seeds. */
	c = run_config(64, "2.5");
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	stream_run(&b, &s, 0);
	for (uint64_t i = 0; i < b.n; i++)
		if (!b.slots[i].echo) {
			uint64_t f = b.slots[i].fresh;

			ck_assert_uint_eq(b.slots[i].index, a.slots[f].index);
			ck_assert_uint_eq(b.slots[i].augment_seed,
				a.slots[f].augment_seed);
		}
	stream_free(&a);
	stream_free(&b);
}
END_TEST

START_TEST(test_batches_echo_at_once_in_a_window_of_one_batch)
{
	struct schedule_config c = run_config(50, "3");
	struct stream st = {0};
	struct schedule s;

	c.point = SCHEDULE_BATCH;
	c.window = 50;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	stream_run(&st, &s, 0);
	ck_assert_uint_eq(st.batches, 3 * 400);
	for (uint64_t i = 0; i < st.n; i++) {
		ck_assert_uint_eq(st.slots[i].fresh, i / 150 * 50 + i % 50);
		ck_assert_uint_eq(st.slots[i].echo, i / 50 % 3);
	}
	stream_free(&st);
}
END_TEST

START_TEST(test_a_shuffle_of_neighbours_stays_near)
{
	struct schedule_config c = run_config(64, "1");
	uint64_t moved = 0;
	struct stream st = {0};
	struct schedule s;

	c.order = SCHEDULE_NEARBY;
	c.nearby = 300;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	stream_run(&st, &s, 0);
	for (uint64_t i = 0; i < st.n; i++) {
		ck_assert_uint_eq(st.slots[i].index / 300, i / 300);
		moved += st.slots[i].index != i;
	}
	ck_assert_uint_gt(moved, 19000);
	stream_free(&st);
}
END_TEST

START_TEST(test_a_run_without_end_goes_on)
{
	struct schedule_config c = run_config(64, "2.5");
	struct schedule_slot slots[64];
	struct schedule_cursor cursor;
	struct schedule_facts facts;
	struct schedule s;

	c.epochs = 0;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_int_eq(schedule_seek(&s, &cursor, UINT64_C(1) << 45), 0);
	for (int i = 0; i < 100; i++) {
		uint32_t fresh = 0;

		ck_assert_uint_eq(schedule_next(&s, &cursor, slots), 64);
		for (int j = 0; j < 64; j++)
			fresh += !slots[j].echo;
		ck_assert(fresh == 25 || fresh == 26);
	}
	schedule_facts(&s, &facts);
	ck_assert_uint_eq(facts.steps, UINT64_MAX);
	ck_assert(facts.apart && facts.exception_step == UINT64_MAX);
}
END_TEST

/* --- mixing: the table of doc/schedule.md --- */

struct mix_row {
	const char *echo;
	/* lag_mean is in steps. again_max is the highest probability that two
	 * examples that share a batch share one again at their next servings.
	 * With a pool of W - B examples drawn at random, it would be 1/15. */
	double lag_mean, again_max;
	uint64_t ramp, drain, lag_max;
};

static int by_fresh(const void *a, const void *b)
{
	const struct schedule_slot *x = a, *y = b;

	if (x->fresh != y->fresh)
		return x->fresh < y->fresh ? -1 : 1;
	return x->echo < y->echo ? -1 : 1;
}

/* Returns the share of the other examples of its batch that an example meets
 * again at its next serving. */
static double meet_again(
	const struct schedule *s, const struct stream *st, uint64_t step)
{
	uint64_t next[1024], met = 0, n = 0;
	uint64_t mates = st->begin[step + 1] - st->begin[step] - 1;

	for (uint64_t i = st->begin[step]; i < st->begin[step + 1]; i++)
		if (!st->slots[i].last) {
			ck_assert_uint_eq(
				schedule_serving_step(s, st->slots[i].fresh,
					st->slots[i].echo + 1, &next[n]),
				0);
			n++;
		}
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t j = 0; j < i; j++)
			met += 2 * (next[i] == next[j]);
	return (double)met / (double)(n * mates);
}

static void measure_lag(const struct stream *st, const struct schedule *s,
	double *mean, uint64_t *least, uint64_t *most)
{
	struct schedule_slot *all = calloc(st->n, sizeof(*all));
	uint64_t sum = 0, n = 0;

	memcpy(all, st->slots, st->n * sizeof(*all));
	for (uint64_t t = 0; t < st->batches; t++)
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			all[i].epoch = t;
	qsort(all, st->n, sizeof(*all), by_fresh);
	*least = UINT64_MAX;
	*most = 0;
	for (uint64_t i = 1; i < st->n; i++) {
		uint64_t lag = all[i].epoch - all[i - 1].epoch;

		if (!all[i].echo || all[i].fresh < s->spread ||
			all[i].fresh > s->fresh - 2 * s->spread)
			continue;
		sum += lag;
		n++;
		*least = lag < *least ? lag : *least;
		*most = lag > *most ? lag : *most;
	}
	*mean = (double)sum / (double)n;
	free(all);
}

/* B = 256, W = 16 B; see the table in doc/schedule.md. */
static const struct mix_row mix_rows[] = {
	{"1.5", 22.5, 0.017, 15, 8, 46},
	{"2", 30.0, 0.020, 15, 15, 62},
	{"2.5", 18.75, 0.035, 23, 15, 40},
	{"4", 20.0, 0.037, 30, 30, 42},
	{"8", 17.14, 0.067, 60, 60, 35},
};

START_TEST(test_echoes_mix_and_keep_their_distance)
{
	const struct mix_row *row = &mix_rows[_i];
	struct schedule_config c = run_config(256, row->echo);
	struct schedule_facts facts;
	uint64_t least, most, steps = 0, dups = 0;
	double mean, again = 0;
	struct stream st = {0};
	struct schedule s;

	c.examples = 40000;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_uint_eq(s.c.window, 4096);
	stream_run(&st, &s, 0);
	schedule_facts(&s, &facts);
	for (uint64_t t = 0; t < st.batches; t++)
		if (t != facts.exception_step)
			dups += duplicates_of(&s, st.slots + st.begin[t],
				(uint32_t)(st.begin[t + 1] - st.begin[t]));
	for (uint64_t t = facts.ramp_steps;
		t + 2 * facts.drain_steps + 64 < st.batches; t += 7, steps++)
		again += meet_again(&s, &st, t);
	again /= (double)steps;
	measure_lag(&st, &s, &mean, &least, &most);
	printf("# e %s: ramp %" PRIu64 " drain %" PRIu64 " lag %" PRIu64
	       " / %.1f / %" PRIu64 ", again %.4f, pool %" PRIu64 "\n",
		row->echo, facts.ramp_steps, facts.drain_steps, least, mean,
		most, again, facts.pool_max);
	fflush(stdout);
	ck_assert_uint_eq(dups, 0);
	ck_assert(fabs((double)facts.ramp_steps - (double)row->ramp) <= 1);
	ck_assert(fabs((double)facts.drain_steps - (double)row->drain) <= 1);
	ck_assert(fabs(mean - row->lag_mean) < 0.02 * row->lag_mean);
	ck_assert_uint_le(most, row->lag_max);
	ck_assert(again > 0 && again < row->again_max);
	stream_free(&st);
}
END_TEST

START_TEST(test_a_slot_costs_well_under_a_microsecond)
{
	static const char *const echoes[] = {"1", "2", "2.5", "8"};
	struct schedule_slot slots[256];

	for (int i = 0; i < 4; i++) {
		struct schedule_config c = run_config(256, echoes[i]);
		struct schedule_cursor cursor;
		clock_t begin = clock();
		struct schedule s;
		double ns;

		c.examples = 1281167;
		c.epochs = 0;
		ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
		ck_assert_int_eq(schedule_seek(&s, &cursor, 0), 0);
		for (int t = 0; t < 2000; t++)
			(void)schedule_next(&s, &cursor, slots);
		ns = (double)(clock() - begin) * 1e9 / CLOCKS_PER_SEC /
			(2000 * 256);
		printf("# e %s: %.0f ns a slot\n", echoes[i], ns);
		/* Sanitizers and valgrind are slow, so the limit is high. */
		ck_assert(ns < 100000);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("schedule");
	TCase *t = case_of(s, "cases");

	tcase_add_test(t, test_echo_factors_are_read_as_the_loader_takes_them);
	tcase_add_test(t,
		test_a_window_too_small_is_refused_with_the_size_that_would_do);
	tcase_add_test(t, test_the_default_window_is_never_refused);
	tcase_add_test(t, test_nonsense_is_refused);
	tcase_add_test(
		t, test_without_echo_the_stream_is_the_plain_permutation);
	tcase_add_test(t, test_batches_echo_at_once_in_a_window_of_one_batch);
	tcase_add_test(t, test_a_shuffle_of_neighbours_stays_near);
	tcase_add_test(t, test_a_run_without_end_goes_on);
	tcase_add_loop_test(t, test_echoes_mix_and_keep_their_distance, 0, 5);
	tcase_add_test(t, test_a_slot_costs_well_under_a_microsecond);
	return s;
}

int main(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	return run_suite(suite());
}
