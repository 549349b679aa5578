/* SPDX-License-Identifier: MIT */
/*
 * The analyzer's model against simulated trainers, and its policies against
 * simulated caches.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/study/model.h"
#include "suite.h"

/* -- A simulated trainer --------------------------------------------------- */

#define SAMPLES 6000
#define WORKERS_MAX 64

/* Times in ms. Workers fetch and prepare one sample at a time; the link sends
 * one sample at a time; the trainer consumes samples in order. */
struct trainer {
	unsigned workers, cpus, ahead;
	double latency, link, prep, step;
};

static double uniform(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (double)(*state >> 11) / 9007199254740992.0;
}

static unsigned earliest(const double *t, unsigned n)
{
	unsigned best = 0;

	for (unsigned i = 1; i < n; i++)
		if (t[i] < t[best])
			best = i;
	return best;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

enum state { TAKE, LINK, PREP, DONE };

/* One run. Events are handled in the order of time, so queues are fair. */
struct run {
	const struct trainer *t;
	double miss, link, cpu[WORKERS_MAX];
	double at[WORKERS_MAX]; /* next event of each worker */
	enum state state[WORKERS_MAX];
	unsigned sample[WORKERS_MAX];
	double done[SAMPLES], taken[SAMPLES];
	unsigned begun, ntaken;
	uint64_t seed;
};

static void take(struct run *r, unsigned w)
{
	const struct trainer *t = r->t;

	if (r->begun >= r->ntaken + t->ahead) {
		/* the queue is full, so look again a little later */
		r->at[w] += 0.1;
		return;
	}
	if (r->begun >= t->ahead)
		r->at[w] = later(r->at[w], r->taken[r->begun - t->ahead]);
	r->sample[w] = r->begun++;
	r->state[w] = PREP;
	if (uniform(&r->seed) < r->miss) {
		r->state[w] = LINK;
		r->at[w] += t->latency;
	}
}

static void event(struct run *r, unsigned w)
{
	const struct trainer *t = r->t;
	unsigned p = earliest(r->cpu, t->cpus), n;

	switch (r->state[w]) {
	case TAKE:
		take(r, w);
		return;
	case LINK:
		r->at[w] = r->link = later(r->link, r->at[w]) + t->link;
		r->state[w] = PREP;
		return;
	case PREP:
		r->at[w] = r->cpu[p] = later(r->cpu[p], r->at[w]) +
			t->prep * (0.5 + uniform(&r->seed));
		r->state[w] = DONE;
		return;
	case DONE:
		r->done[r->sample[w]] = r->at[w];
		for (n = r->ntaken; n < r->begun && r->done[n] > 0; n++)
			r->taken[n] = t->step +
				later(r->done[n], n ? r->taken[n - 1] : 0);
		r->ntaken = n;
		r->state[w] = TAKE;
	}
}

/* Simulate a run. Returns its rate in its second half, in samples per second.
 */
static double simulate(const struct trainer *t, double miss)
{
	static struct run r;

	r = (struct run){.t = t, .miss = miss, .seed = 1};
	while (r.begun < SAMPLES)
		event(&r, earliest(r.at, t->workers));
	return 1000 * (r.ntaken - 1 - SAMPLES / 2) /
		(r.taken[r.ntaken - 1] - r.taken[SAMPLES / 2]);
}

static const struct trainer trainers[] = {
	/* columns: workers, processors, ahead; latency, link, prep, step */
	{4, 4, 64, 5, 0.1, 4, 0.5},
	{4, 4, 64, 10, 0.1, 2, 0.5},
	{4, 4, 64, 0.2, 3, 4, 0.5},
	{4, 4, 64, 2, 1, 2, 1.5},
	{4, 4, 64, 20, 0.5, 4, 0.2},
	{16, 4, 256, 5, 0.1, 4, 0.5},
	{16, 4, 256, 10, 0.1, 2, 1},
	{16, 4, 256, 0.2, 3, 4, 0.5},
	{16, 4, 256, 2, 1.5, 2, 0.6},
	{16, 4, 256, 40, 0.5, 4, 0.2},
	{64, 4, 512, 5, 1.5, 4, 0.5},
	{64, 4, 512, 10, 2, 2, 1},
	{64, 4, 512, 0.2, 3, 4, 0.5},
	{64, 4, 512, 80, 1, 2, 0.6},
	{64, 4, 512, 40, 5, 4, 0.2},
};

#define TRAINERS (sizeof(trainers) / sizeof(trainers[0]))

static struct model model_of(const struct trainer *t)
{
	struct model m = {.r1 = simulate(t, 0),
		.r0 = simulate(t, 1),
		.g = 1000 / t->step,
		.source = 1000 / t->link};

	model_fix(&m);
	for (unsigned i = 0; i < MODEL_POINTS; i++) {
		double miss = model_point(&m, i);

		model_add(&m, miss, simulate(t, miss));
	}
	return m;
}

/* The number of cache sizes whose prediction is right within 4 %, the largest
 * error of these predictions, and the largest error of each formula alone. */
struct errors {
	unsigned n, good;
	double worst, serial, overlapped;
};

static void add_errors(struct errors *e, const struct trainer *t)
{
	static const double misses[] = {0.1, 0.35, 0.5, 0.65, 0.9};
	struct model m = model_of(t);

	for (unsigned i = 0; i < sizeof(misses) / sizeof(misses[0]); i++) {
		double miss = misses[i], rate = simulate(t, miss);
		double error = fabs(model_time(&m, miss) * rate - 1);

		e->n++;
		e->good += error <= 0.04;
		e->worst = later(e->worst, error);
		e->serial = later(
			e->serial, fabs(model_serial(&m, miss) * rate - 1));
		e->overlapped = later(e->overlapped,
			fabs(model_overlapped(&m, miss) * rate - 1));
	}
}

START_TEST(test_simulated_trainers_are_predicted_within_4_percent)
{
	struct errors e = {0};

	for (unsigned i = 0; i < TRAINERS; i++)
		add_errors(&e, &trainers[i]);
	ck_assert_msg(e.good + 2 >= e.n && e.worst <= 0.08,
		"%u of %u within 4 %%, worst %.3f", e.good, e.n, e.worst);
	/* If these errors were small, mixing the two formulas would be useless.
	 */
	ck_assert_msg(e.serial > 0.2 && e.overlapped > 0.2,
		"serial %.2f, overlapped %.2f", e.serial, e.overlapped);
}
END_TEST

/* -- Simulated caches ------------------------------------------------------ */

#define ITEMS 2000
#define EPOCHS 8

static void shuffle(unsigned *order, uint64_t *seed)
{
	for (unsigned i = ITEMS - 1; i > 0; i--) {
		unsigned j = (unsigned)(uniform(seed) * (i + 1));
		unsigned swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
}

/* Returns the share of hits after three epochs. The cache replaces the oldest
 * item or a random one. */
static double cache_hits(double cached, bool lru)
{
	static unsigned order[ITEMS], slot[ITEMS];
	/* time at which the item was used; 0: not cached */
	static uint64_t used[ITEMS];
	unsigned room = (unsigned)(cached * ITEMS), held = 0, hits = 0;
	uint64_t seed = 7, now = 0;

	for (unsigned i = 0; i < ITEMS; i++) {
		order[i] = i;
		used[i] = 0;
	}
	for (unsigned e = 0; e < EPOCHS; e++) {
		shuffle(order, &seed);
		for (unsigned i = 0; i < ITEMS; i++) {
			unsigned at = held;

			if (used[order[i]]) {
				hits += e >= 3;
				used[order[i]] = ++now;
				continue;
			}
			if (held < room) {
				held++;
			} else {
				at = (unsigned)(uniform(&seed) * room);
				for (unsigned k = 0; lru && k < room; k++)
					if (used[slot[k]] < used[slot[at]])
						at = k;
				used[slot[at]] = 0;
			}
			slot[at] = order[i];
			used[order[i]] = ++now;
		}
	}
	return (double)hits / (double)(ITEMS * (EPOCHS - 3));
}

START_TEST(test_hits_of_lru_and_random_are_those_of_simulated_caches)
{
	for (double c = 0.25; c < 0.95; c += 0.25) {
		double lru = cache_hits(c, true), random = cache_hits(c, false);

		ck_assert_double_eq_tol(model_hits_lru(c), lru, 0.02);
		ck_assert_double_eq_tol(model_hits_random(c), random, 0.02);
	}
	ck_assert_double_eq_tol(model_hits_random(0.35), 0.138, 0.001);
	ck_assert_double_eq(model_hits_lru(0), 0);
	ck_assert_double_eq(model_hits_lru(1), 1);
	ck_assert_double_eq(model_hits_random(0), 0);
	ck_assert_double_eq(model_hits_random(1), 1);
}
END_TEST

/* -- Arithmetic ------------------------------------------------------------ */

static const struct model plain = {
	.g = 1000, .r1 = 500, .r0 = 100, .source = 400, .l = {0.5}, .n = 1};

static double sum_of(const struct model_shares *s)
{
	return s->compute + s->prep + s->fetch + s->gaps;
}

START_TEST(test_shares_add_up_to_the_time_of_a_sample)
{
	for (double miss = 0; miss <= 1; miss += 0.125)
		for (double gaps = 0; gaps < 1; gaps += 0.25) {
			struct model_shares s = model_share(&plain, miss, gaps);

			ck_assert_double_eq_tol(
				sum_of(&s), model_time(&plain, miss), 1e-12);
			ck_assert(
				s.compute >= 0 && s.prep >= 0 && s.fetch >= 0);
		}
}
END_TEST

START_TEST(test_gaps_take_as_long_with_misses_as_without)
{
	struct model m = {.g = 1000, .r1 = 1000, .r0 = 100};
	struct model_shares s;

	model_fix(&m);
	s = model_share(&m, 1, 0.2);
	ck_assert_double_eq_tol(s.compute, 0.0008, 1e-12);
	ck_assert_double_eq_tol(s.gaps, 0.0002, 1e-12);
	ck_assert_double_eq_tol(s.prep, 0, 1e-12);
	ck_assert_double_eq_tol(s.fetch, 0.009, 1e-12);
}
END_TEST

START_TEST(test_the_verdict_names_the_largest_stall)
{
	struct model_shares fetch = {1, 0.1, 0.3, 0}, prep = {1, 0.1, 0.05, 0};
	struct model_shares none = {1, 0.01, 0.01, 0};

	ck_assert_str_eq(model_verdict(&fetch), "highly");
	ck_assert_str_eq(model_bottleneck(&fetch), "fetch");
	ck_assert_str_eq(model_verdict(&prep), "moderately");
	ck_assert_str_eq(model_bottleneck(&prep), "prep");
	ck_assert_str_eq(model_verdict(&none), "not");
	ck_assert_str_eq(model_bottleneck(&none), "compute");
}
END_TEST

START_TEST(test_enough_is_the_smallest_cache_at_full_rate)
{
	struct model over = plain, never = plain;
	double enough = model_enough(&plain);

	ck_assert_double_eq_tol(model_time(&plain, 1 - enough),
		1.01 * model_time(&plain, 0), 1e-9);
	over.l[0] = 0; /* with m = r0 / r1, the source alone is fast enough */
	ck_assert_double_eq_tol(model_enough(&over), 1 - 0.2 * 1.01, 1e-9);
	never.r0 = never.r1;
	ck_assert_double_eq(model_enough(&never), 0);
}
END_TEST

START_TEST(test_actions_shorten_an_epoch_no_more_than_they_can)
{
	struct model planned = model_planned(&plain);
	struct model workers = model_workers(&plain, 2);
	struct model many = model_workers(&plain, 100);
	struct model faster = model_faster(&plain, 2);

	ck_assert_double_eq_tol(model_time(&planned, 1), 1.0 / 400, 1e-12);
	ck_assert_double_eq_tol(model_time(&workers, 1), 1.0 / 200, 1e-12);
	ck_assert_double_eq_tol(model_time(&many, 1), 1.0 / 400, 1e-12);
	ck_assert_double_eq_tol(model_time(&faster, 1), 1.0 / 200, 1e-12);
	ck_assert_double_eq_tol(model_echo(&plain, 1), 10, 1e-9);
	ck_assert_double_eq_tol(model_echo(&plain, 0), 2, 1e-9);
}
END_TEST

START_TEST(test_rates_in_the_wrong_order_are_put_right)
{
	struct model m = {.g = 90, .r1 = 100, .r0 = 101, .source = 80};

	model_fix(&m);
	ck_assert(m.r0 <= m.r1 && m.r1 <= m.g && m.source >= m.r0);
	ck_assert(m.g_bound);
	ck_assert_double_eq(model_lambda(&m, 0.85, 100), 0);
}
END_TEST

START_TEST(test_more_misses_do_not_make_a_sample_take_less_time)
{
	struct model m = {.g = 900, .r1 = 800, .r0 = 300, .source = 300};
	double before = 0;

	/* The second and the third point are replaced by their mean, and then
	 * the first three. */
	model_add(&m, 0.4, 500);
	model_add(&m, 0.45, 520);
	model_add(&m, 0.5, 560);
	model_settle(&m);
	for (unsigned i = 0; i < m.n; i++)
		ck_assert_double_eq_tol(model_time(&m, m.at[i]),
			(1 / 500.0 + 1 / 520.0 + 1 / 560.0) / 3, 1e-9);
	m.n = 0;
	model_add(&m, 0.2, 600);
	model_add(&m, 0.4, 500);
	model_add(&m, 0.5, 520);
	model_settle(&m);
	ck_assert_double_eq_tol(model_time(&m, 0.2), 1 / 600.0, 1e-9);
	for (unsigned i = 0; i <= 10; i++) {
		ck_assert_double_ge(model_time(&m, i / 10.0), before - 1e-9);
		before = model_time(&m, i / 10.0);
	}
}
END_TEST

START_TEST(test_a_larger_cache_is_never_slower_between_points)
{
	/* These rates were measured while other programs ran, so all points are
	 * replaced by their mean. */
	struct model m = {.g = 94.1, .r1 = 94.1, .r0 = 52.9, .source = 900};
	double before = 0;

	model_add(&m, 0.36, 61.3);
	model_add(&m, 0.569, 74.6);
	model_add(&m, 0.764, 76.8);
	model_settle(&m);
	for (unsigned i = 0; i <= 100; i++) {
		ck_assert_double_ge(
			model_time(&m, i / 100.0), before * (1 - 1e-9));
		before = model_time(&m, i / 100.0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("model");
	TCase *t = case_of(s, "model");

	tcase_add_test(
		t, test_simulated_trainers_are_predicted_within_4_percent);
	tcase_add_test(
		t, test_hits_of_lru_and_random_are_those_of_simulated_caches);
	tcase_add_test(t, test_shares_add_up_to_the_time_of_a_sample);
	tcase_add_test(t, test_gaps_take_as_long_with_misses_as_without);
	tcase_add_test(t, test_the_verdict_names_the_largest_stall);
	tcase_add_test(t, test_enough_is_the_smallest_cache_at_full_rate);
	tcase_add_test(t, test_actions_shorten_an_epoch_no_more_than_they_can);
	tcase_add_test(t, test_rates_in_the_wrong_order_are_put_right);
	tcase_add_test(t, test_more_misses_do_not_make_a_sample_take_less_time);
	tcase_add_test(t, test_a_larger_cache_is_never_slower_between_points);
	return run_suite(s);
}
