/* SPDX-License-Identifier: MIT */
/* Tests of the code that recognises epochs by their misses alone. The mount is
 * simulated, with readers that shuffle, and so are trainers with larger caches.
 * No clocks, no threads. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "mount/daemon/epochs.h"
#include "suite.h"

#define ITEM_BYTES 100000u

/* -- A simulated mount ----------------------------------------------------- */

struct scene {
	struct epochs *e;
	struct epochs_look now;
	/* number of items; the first `resident` ones are in the cache */
	unsigned items, resident;
	unsigned *order;
	uint64_t random;
	/* Shares of the misses, and of the hits, that the kernel answers. */
	double hidden, hidden_hits;
	double read;   /* share of each item that is read */
	double waited; /* share of the time in which readers wait */
	/* misses are admitted until half of the items are resident */
	bool filling;
};

static double dice(struct scene *s)
{
	s->random = s->random * UINT64_C(6364136223846793005) +
		1442695040888963407U;
	return (double)(s->random >> 11) / 9007199254740992.0;
}

static uint64_t key_of(uint64_t i)
{
	i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	i = (i ^ (i >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	i = (i ^ (i >> 27)) * UINT64_C(0x94d049bb133111eb);
	return i ^ (i >> 31);
}

static void scene_look(void *arg, struct epochs_look *now)
{
	const struct scene *s = arg;

	*now = s->now;
	now->dataset_bytes = 0;
}

static void scene_begin(
	struct scene *s, unsigned items, unsigned resident, uint64_t pages)
{
	struct epochs_config config = {
		.look = scene_look, .arg = s, .pages_bytes = pages};

	*s = (struct scene){.items = items,
		.resident = resident,
		.random = 7,
		.read = 1,
		.waited = 0.5};
	s->e = epochs_new(&config);
	s->order = calloc(items, sizeof(*s->order));
	ck_assert(s->e && s->order);
	for (unsigned i = 0; i < items; i++)
		s->order[i] = i;
	s->now = (struct epochs_look){.time_ns = NS_PER_S,
		.ready = true,
		.dataset_bytes = (uint64_t)items * ITEM_BYTES,
		.resident_bytes = (uint64_t)resident * ITEM_BYTES};
}

static void scene_end(struct scene *s)
{
	epochs_free(s->e);
	free(s->order);
}

static void shuffle(struct scene *s)
{
	for (unsigned i = s->items - 1; i > 0; i--) {
		unsigned j = (unsigned)(dice(s) * (i + 1)), was = s->order[i];

		s->order[i] = s->order[j];
		s->order[j] = was;
	}
}

static void scene_miss(struct scene *s, unsigned i)
{
	epochs_missed(s->e,
		&(struct epochs_miss){.key = key_of(i),
			.bytes = ITEM_BYTES,
			.planned_bytes = s->now.planned_bytes,
			.time_ns = s->now.time_ns});
	s->now.miss_bytes += (uint64_t)(s->read * ITEM_BYTES);
	s->now.origin_bytes += ITEM_BYTES;
}

/* Read items [from, to) of the order that was shuffled last, 1 ms each. */
static void scene_read(struct scene *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		bool hit = s->order[i] < s->resident;

		s->now.time_ns += NS_PER_MS;
		s->now.starved_us += (uint64_t)(1000 * s->waited);
		if (dice(s) < (hit ? s->hidden_hits : s->hidden))
			continue;
		if (hit)
			s->now.hit_bytes += ITEM_BYTES;
		else
			scene_miss(s, s->order[i]);
	}
	if (s->filling && to == s->items) {
		s->resident = s->items / 2;
		s->now.resident_bytes = (uint64_t)s->resident * ITEM_BYTES;
		s->filling = false;
	}
}

static void scene_epochs(struct scene *s, unsigned n)
{
	for (; n > 0; n--) {
		shuffle(s);
		scene_read(s, 0, s->items);
	}
}

/* Read a part of one more epoch, and get the report at that point. */
static bool scene_tell(
	struct scene *s, unsigned from, unsigned to, struct epochs_news *n)
{
	if (from == 0)
		shuffle(s);
	scene_read(s, from, to);
	return epochs_tell(s->e, &s->now, n);
}

static void within(int got, int least, int most)
{
	ck_assert_int_ge(got, least);
	ck_assert_int_le(got, most);
}

/* -- Epochs ---------------------------------------------------------------- */

START_TEST(test_says_number_share_and_hits_in_every_epoch)
{
	static const unsigned items[] = {40, 1000, 300000};
	struct epochs_news n;
	struct scene s;

	for (unsigned k = 0; k < 3; k++) {
		unsigned all = items[k];

		scene_begin(&s, all, all / 4, 1);
		for (unsigned i = 1; i <= 5; i++) {
			ck_assert(scene_tell(&s, 0, all / 2, &n));
			ck_assert_uint_eq(n.epoch, i);
			within(n.done_pct, all == 40 ? 35 : 47,
				all == 40 ? 65 : 53);
			within(n.expected_pct, 24, 26);
			within(n.hits_pct, all == 40 ? 10 : 22,
				all == 40 ? 40 : 28);
			within(n.waited_pct, 49, 51);
			ck_assert(scene_tell(&s, all / 2, all, &n));
			within(n.done_pct, 99, 100);
			within(n.hits_pct, all == 40 ? 20 : 24,
				all == 40 ? 30 : 26);
		}
		scene_end(&s);
	}
}
END_TEST

START_TEST(test_waits_for_a_whole_second_epoch_where_pages_have_no_bound)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 0);
	ck_assert(scene_tell(&s, 0, 1000, &n));
	ck_assert(!scene_tell(&s, 0, 1000, &n));
	ck_assert(scene_tell(&s, 0, 500, &n));
	ck_assert_uint_eq(n.epoch, 3);
	scene_end(&s);
}
END_TEST

START_TEST(test_says_nothing_where_the_kernel_answers_misses)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 0);
	scene_epochs(&s, 1);
	s.hidden = 0.2;
	scene_epochs(&s, 1);
	for (unsigned i = 0; i < 5; i++)
		ck_assert(!scene_tell(&s, 0, 1000, &n));
	/* The kernel no longer answers reads, so all values are known again
	 * except the number. */
	s.hidden = 0;
	scene_epochs(&s, 2);
	ck_assert(scene_tell(&s, 0, 500, &n));
	ck_assert_uint_eq(n.epoch, 0);
	within(n.done_pct, 46, 54);
	scene_end(&s);
}
END_TEST

START_TEST(test_pages_whose_bound_is_large_tell_nothing_at_once)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 750 * ITEM_BYTES / 10);
	scene_epochs(&s, 1);
	ck_assert(!scene_tell(&s, 0, 500, &n));
	scene_end(&s);
}
END_TEST

START_TEST(test_hits_that_the_kernel_answers_are_not_said)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 500, 1);
	scene_epochs(&s, 1);
	s.hidden_hits = 0.7;
	ck_assert(scene_tell(&s, 0, 500, &n));
	ck_assert_uint_eq(n.epoch, 2);
	ck_assert_int_eq(n.hits_pct, EPOCHS_UNKNOWN);
	within(n.expected_pct, 50, 50);
	within(n.done_pct, 45, 55);
	scene_end(&s);
}
END_TEST

START_TEST(test_no_hit_of_a_small_dataset_is_not_said)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 12, 4, 1);
	s.hidden_hits = 1;
	scene_epochs(&s, 1);
	ck_assert(scene_tell(&s, 0, 12, &n));
	ck_assert_uint_eq(n.epoch, 2);
	within(n.expected_pct, 33, 34);
	ck_assert_int_eq(n.hits_pct, EPOCHS_UNKNOWN);
	scene_end(&s);
}
END_TEST

/* -- What the source delivered --------------------------------------------- */

/* Returns the number of items that were delivered in this epoch. */
static int delivered(const struct scene *s)
{
	uint64_t bytes;

	if (!epochs_delivered(s->e, &s->now, &bytes))
		return EPOCHS_UNKNOWN;
	return (int)(bytes / ITEM_BYTES);
}

START_TEST(test_says_what_the_source_delivered_in_each_epoch)
{
	static const unsigned items[] = {12, 1000, 300000};
	struct epochs_news n;
	struct scene s;

	for (unsigned k = 0; k < 3; k++) {
		int missing = (int)items[k] / 2;

		/* The kernel has no limit, and may answer all hits. */
		scene_begin(&s, items[k], items[k] / 2, 0);
		s.hidden_hits = 1;
		ck_assert_int_eq(delivered(&s), EPOCHS_UNKNOWN);
		for (unsigned i = 1; i <= 4; i++) {
			(void)scene_tell(&s, 0, items[k] * 3 / 4, &n);
			within(delivered(&s), missing / 2, missing);
			(void)scene_tell(&s, items[k] * 3 / 4, items[k], &n);
			/* The estimate is made from a sample of items. */
			within(delivered(&s), missing - missing / 1000,
				missing + missing / 1000);
		}
		s.now.time_ns += 30 * NS_PER_S;
		s.now.time_ns += (uint64_t)items[k] * NS_PER_MS;
		ck_assert_int_eq(delivered(&s), EPOCHS_UNKNOWN);
		scene_end(&s);
	}
}
END_TEST

START_TEST(test_items_fetched_before_the_first_miss_belong_to_epoch_1)
{
	struct scene s;

	scene_begin(&s, 1000, 0, 0);
	/* a plan has fetched these bytes */
	s.now.origin_bytes = 1000 * ITEM_BYTES;
	shuffle(&s);
	for (unsigned i = 0; i < 10; i++) {
		scene_miss(&s, s.order[i]);
		s.now.origin_bytes -= ITEM_BYTES;
	}
	ck_assert_int_eq(delivered(&s), 1000);
	scene_end(&s);
}
END_TEST

START_TEST(test_items_that_miss_again_in_memory_are_not_delivered)
{
	struct scene s;
	uint64_t bytes;

	scene_begin(&s, 12, 0, 0);
	scene_epochs(&s, 1);
	bytes = s.now.origin_bytes;
	for (unsigned i = 0; i < 12; i++) {
		scene_miss(&s, i);
		s.now.origin_bytes = bytes;
	}
	ck_assert_int_eq(delivered(&s), 0);
	scene_end(&s);
}
END_TEST

START_TEST(test_says_what_it_delivered_where_the_kernel_answers_misses)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 0);
	scene_epochs(&s, 1);
	s.hidden = 0.2;
	for (unsigned i = 0; i < 5; i++) {
		(void)scene_tell(&s, 0, 1000, &n);
		within(delivered(&s), 560, 640);
	}
	scene_end(&s);
}
END_TEST

START_TEST(test_does_not_divide_what_plans_fetch_over_the_end_of_an_epoch)
{
	struct scene s;

	scene_begin(&s, 1000, 500, 1);
	s.now.planned_bytes = 20 * ITEM_BYTES;
	scene_epochs(&s, 2);
	within(delivered(&s), 499, 501);
	s.now.planned_bytes = 100 * ITEM_BYTES;
	ck_assert_int_eq(delivered(&s), EPOCHS_UNKNOWN);
	/* There was no plan at the beginning of an epoch, either. */
	scene_epochs(&s, 1);
	s.now.planned_bytes = 0;
	ck_assert_int_eq(delivered(&s), EPOCHS_UNKNOWN);
	scene_end(&s);
}
END_TEST

START_TEST(test_two_items_that_miss_again_tell_no_epochs_apart)
{
	struct scene s;

	/* All other items went into the cache. */
	scene_begin(&s, 2, 0, 0);
	s.now.dataset_bytes = 1000 * ITEM_BYTES;
	scene_epochs(&s, 1);
	ck_assert_int_eq(delivered(&s), 2);
	for (unsigned i = 0; i < 5; i++) {
		scene_epochs(&s, 1);
		ck_assert_int_eq(delivered(&s), EPOCHS_UNKNOWN);
	}
	scene_end(&s);
}
END_TEST

START_TEST(test_says_nothing_when_nothing_misses_any_more)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 1);
	ck_assert(!epochs_tell(s.e, &s.now, &n));
	scene_epochs(&s, 2);
	ck_assert(epochs_tell(s.e, &s.now, &n));
	s.now.time_ns += 2 * NS_PER_S;
	ck_assert(!epochs_tell(s.e, &s.now, &n));
	scene_end(&s);
}
END_TEST

START_TEST(test_says_nothing_where_items_are_read_in_part)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 1);
	s.read = 0.5;
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!scene_tell(&s, 0, 1000, &n));
	scene_end(&s);
}
END_TEST

START_TEST(test_a_few_items_that_are_read_again_begin_no_epoch)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 1);
	scene_epochs(&s, 1);
	ck_assert(scene_tell(&s, 0, 500, &n));
	for (unsigned i = 0, again = 0; again < 3; i++)
		if (s.order[i] >= 250) {
			scene_miss(&s, s.order[i]);
			again++;
		}
	ck_assert(epochs_tell(s.e, &s.now, &n));
	ck_assert_uint_eq(n.epoch, 2);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_part_of_the_dataset_has_epochs_of_its_own)
{
	struct epochs_news n;
	struct scene s;

	/* Half of the listed files are never read. */
	scene_begin(&s, 1000, 0, 1);
	s.now.dataset_bytes *= 2;
	ck_assert(scene_tell(&s, 0, 1000, &n));
	within(n.done_pct, 49, 51);
	for (unsigned i = 2; i < 4; i++) {
		ck_assert(scene_tell(&s, 0, 1000, &n));
		ck_assert_uint_eq(n.epoch, i);
		within(n.done_pct, 99, 100);
	}
	scene_end(&s);
}
END_TEST

START_TEST(test_misses_before_the_tiers_are_listed_do_not_count)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 250, 1);
	s.now.ready = false;
	ck_assert(!scene_tell(&s, 0, 500, &n));
	s.now.ready = true;
	ck_assert(scene_tell(&s, 500, 1000, &n));
	ck_assert_uint_eq(n.epoch, 1);
	within(n.done_pct, 45, 55);
	scene_end(&s);
}
END_TEST

/* -- Gains ----------------------------------------------------------------- */

START_TEST(test_tells_no_gain_while_the_cache_fills)
{
	struct epochs_news n;
	struct scene s;

	scene_begin(&s, 1000, 0, 1);
	s.filling = true;
	ck_assert(scene_tell(&s, 0, 1000, &n));
	ck_assert_uint_eq(n.epoch_ms, 0);
	ck_assert_int_eq(n.expected_pct, 0);
	ck_assert(scene_tell(&s, 0, 500, &n));
	within(n.expected_pct, 49, 51);
	within((int)n.epoch_ms, 930, 1070);
	ck_assert_uint_eq(n.larger.cache_bytes, 750 * ITEM_BYTES);
	ck_assert_uint_eq(n.whole.cache_bytes, 1000 * ITEM_BYTES);
	scene_end(&s);
}
END_TEST

/* A trainer: workers fetch and prepare samples, and the trainer consumes them
 * in order. Times are in ms. */
struct trainer_of {
	/* number of workers, and of samples that may wait for the trainer */
	unsigned workers, ahead;
	double latency, link, prep, step;
};

#define SAMPLES 4000
#define WORKERS_MAX 16

struct outcome_of {
	double time, waited;
};

static unsigned soonest(const double *at, unsigned n)
{
	unsigned best = 0;

	for (unsigned i = 1; i < n; i++)
		if (at[i] < at[best])
			best = i;
	return best;
}

static double later_of(double a, double b)
{
	return a > b ? a : b;
}

/* Simulate an epoch in which this share of the samples misses. */
static struct outcome_of simulate(const struct trainer_of *t, double miss)
{
	double at[WORKERS_MAX] = {0}, link = 0, covered = 0, end = 0;
	static double taken[SAMPLES];
	struct scene s = {.random = 3};
	struct outcome_of o = {0};

	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned w = soonest(at, t->workers);
		double begun = at[w];

		if (i >= t->ahead)
			begun = later_of(begun, taken[i - t->ahead]);
		at[w] = begun;
		if (dice(&s) < miss) {
			link = later_of(link, begun + t->latency) + t->link;
			at[w] = link;
			o.waited +=
				later_of(0, link - later_of(covered, begun));
			covered = later_of(covered, link);
		}
		at[w] += t->prep;
		end = later_of(end, at[w]) + t->step;
		taken[i] = end;
	}
	o.time = end;
	return o;
}

/* Multiply the times by a factor: an epoch of the scene takes a second, that of
 * a trainer takes longer. */
static void scale(struct epochs_gain *g, double by)
{
	g->least_ms = (uint64_t)((double)g->least_ms * by);
	g->most_ms = (uint64_t)((double)g->most_ms * by);
}

/* Get the report on a trainer in an epoch with this share of misses. */
static void tell_trainer(
	const struct trainer_of *t, double miss, struct epochs_news *n)
{
	struct outcome_of o = simulate(t, miss);
	struct scene s;

	scene_begin(&s, 1000, (unsigned)(1000 * (1 - miss)), 1);
	s.waited = o.waited / o.time;
	scene_epochs(&s, 2);
	ck_assert(scene_tell(&s, 0, 500, n));
	scale(&n->larger, o.time / (double)n->epoch_ms);
	scale(&n->whole, o.time / (double)n->epoch_ms);
	scene_end(&s);
}

static void holds(double got, const struct epochs_gain *g)
{
	ck_assert_double_ge(got, (double)g->least_ms);
	ck_assert_double_le(got, (double)g->most_ms);
}

START_TEST(test_the_gain_of_simulated_trainers_is_within_the_range)
{
	static const struct trainer_of trainers[] = {
		{1, 16, 5, 0, 2, 0},
		{1, 16, 5, 0, 2, 6},
		{1, 16, 5, 0, 2, 12},
		{2, 64, 5, 0, 4, 1},
		{4, 64, 0, 3, 4, 0.5},
		{4, 64, 0, 3, 4, 2.5},
		{4, 64, 5, 1, 8, 1},
		{4, 64, 20, 0.5, 2, 1},
		{16, 256, 5, 2, 9, 1},
		{16, 256, 40, 1, 2, 2},
	};

	for (unsigned i = 0; i < sizeof(trainers) / sizeof(*trainers); i++) {
		const struct trainer_of *t = &trainers[i];

		for (double miss = 1; miss > 0.2; miss -= 0.25) {
			struct epochs_news n;

			tell_trainer(t, miss, &n);
			holds(simulate(t, miss / 2).time, &n.larger);
			holds(simulate(t, 0).time, &n.whole);
		}
	}
}
END_TEST

START_TEST(test_a_trainer_that_hardly_waits_has_little_to_gain)
{
	static const struct trainer_of t = {4, 64, 1, 0, 1, 5};
	struct outcome_of o = simulate(&t, 0.1);
	struct epochs_news n;

	tell_trainer(&t, 0.1, &n);
	ck_assert_double_lt(o.waited / o.time, 0.05);
	ck_assert_double_gt((double)n.whole.least_ms, 0.9 * o.time);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		test_says_number_share_and_hits_in_every_epoch,
		test_waits_for_a_whole_second_epoch_where_pages_have_no_bound,
		test_says_nothing_where_the_kernel_answers_misses,
		test_pages_whose_bound_is_large_tell_nothing_at_once,
		test_hits_that_the_kernel_answers_are_not_said,
		test_no_hit_of_a_small_dataset_is_not_said,
		test_says_what_the_source_delivered_in_each_epoch,
		test_items_fetched_before_the_first_miss_belong_to_epoch_1,
		test_items_that_miss_again_in_memory_are_not_delivered,
		test_says_what_it_delivered_where_the_kernel_answers_misses,
		test_does_not_divide_what_plans_fetch_over_the_end_of_an_epoch,
		test_two_items_that_miss_again_tell_no_epochs_apart,
		test_says_nothing_when_nothing_misses_any_more,
		test_says_nothing_where_items_are_read_in_part,
		test_a_few_items_that_are_read_again_begin_no_epoch,
		test_a_part_of_the_dataset_has_epochs_of_its_own,
		test_misses_before_the_tiers_are_listed_do_not_count,
		test_tells_no_gain_while_the_cache_fills,
		test_the_gain_of_simulated_trainers_is_within_the_range,
		test_a_trainer_that_hardly_waits_has_little_to_gain,
	};
	Suite *s = suite_create("epochs");
	TCase *tc = case_of(s, "simulated");

	case_add(tc, tests, sizeof(tests) / sizeof(*tests));
	return s;
}

int main(void)
{
	return run_suite(suite());
}
