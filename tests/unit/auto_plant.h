/* SPDX-License-Identifier: MIT */
/* For tests of --echo auto: a real schedule with a simulated storage and a
 * simulated trainer, so that speeds are exact and no test has to wait. The
 * storage makes one example after the other, and is at most a fixed number of
 * examples ahead of the trainer. A step waits for its fresh examples. */
#ifndef AUTO_PLANT_H
#define AUTO_PLANT_H

#include <math.h>

#include "loader/engine/auto.h"
#include "schedule_fixture.h"
#include "suite.h"

#define BATCH 32
/* number of examples that are made before they are needed */
#define AHEAD (64 + 372)
#define AT_A_TIME 64
/* number of examples that are planned ahead of the trainer */
#define PLANNED (4 * BATCH)
#define DOWN_NS 10000000.
/* The number of items that the memory of a mount with a plan can hold. The
 * mount stops fetching when it has that many. */
#define HELD 600
#define RESTS 256
#define SAVED_NS (150. * NS_PER_MS)
#define MAX_ECHO 4.

/* The values of R over time, in windows of V fresh examples. */
struct phase {
	double r;
	uint32_t windows;
};

struct plant {
	struct schedule s;
	struct schedule_cursor cursor;
	struct auto_echo a;
	struct auto_sums sums;
	struct schedule_slot slots[BATCH];
	struct dice dice;
	/* each time is longer or shorter at random, by up to this share */
	double noise;
	double spike_ns; /* additional time of one step in a hundred */
	/* times at which the last examples were ready, and were used */
	double ready_ns[1024], used_ns[1024];
	/*
	 * For throttled storage: storage that is idle saves up credit, at most
	 * for this time. Then reads ahead come in bursts.
	 */
	double bucket_ns, due_ns;
	/* For storage that is throttled like a control group: at the beginning
	 * of each slice of time, all bytes that the slice allows can pass at
	 * once. The first slice begins after idle time. */
	double slice_ns, slices_ns, passed_ns;
	double down_ns; /* duration of a step of the trainer */
	struct auto_burst reads;
	bool burst;
	/* planned: the mount fetches by a plan, and one example in a fixed
	 * number is cached. */
	bool planned, rests;
	unsigned cached_of;
	double run_ns;
	uint64_t made;
	double now_ns, waited_ns;
	uint64_t changes, last_begin;
	bool too_often, echoed;
};

static inline void plant_init(struct plant *p, double noise, double max)
{
	struct schedule_config c = {.examples = 1 << 20,
		.batch = BATCH,
		.seed = 3,
		.echo = {1, 1},
		.echo_max = {(uint32_t)(max * 2), 2}};
	struct error err;

	*p = (struct plant){.noise = noise, .dice = {7}, .down_ns = DOWN_NS};
	ck_assert_int_eq(schedule_init(&p->s, &c, &err), 0);
	ck_assert_int_eq(schedule_seek(&p->s, &p->cursor, 0), 0);
	auto_init(&p->a, BATCH, 1, p->s.spread, p->s.c.echo_max, c.echo);
}

static inline double noisy(struct plant *p, double ns)
{
	double x = (double)roll(&p->dice, 2001) / 1000 - 1;

	return ns * (1 + p->noise * x);
}

static inline void count_full(struct plant *p, double ns)
{
	p->sums.full_ns += (uint64_t)ns;
	p->sums.full_reads++;
}

static inline double made_ns(const struct plant *p)
{
	return p->made ? p->ready_ns[(p->made - 1) % 1024] : 0;
}

static bool throttled(const struct plant *p)
{
	return p->bucket_ns > 0 || p->slice_ns > 0;
}

/* Returns the time at which an example that is requested at `begin` arrives. */
static inline double pass_ns(struct plant *p, double begin, double each_ns)
{
	if (p->slice_ns > 0) {
		double slices = ceil(p->passed_ns / p->slice_ns);

		if (begin > p->slices_ns + slices * p->slice_ns) {
			p->slices_ns = begin;
			p->passed_ns = 0;
		}
		p->passed_ns += each_ns;
		return p->slices_ns +
			floor(p->passed_ns / p->slice_ns) * p->slice_ns;
	}
	if (begin > made_ns(p) + p->bucket_ns / 4)
		p->due_ns = begin - p->bucket_ns;
	p->due_ns = fmax(p->due_ns, made_ns(p) - p->bucket_ns) + each_ns;
	return p->due_ns;
}

static bool is_full(const struct plant *p)
{
	return p->made + AT_A_TIME < p->sums.fresh + AHEAD;
}

/* Make the next example, at `begin` at the earliest. */
static inline void make_throttled(struct plant *p, double begin, double each_ns)
{
	uint64_t behind = p->sums.fresh + AHEAD - p->made, ns;
	double ready;

	begin = fmax(begin, made_ns(p));
	if (begin > made_ns(p)) {
		p->reads = (struct auto_burst){0};
		p->sums.bursts++;
	}
	ready = fmax(pass_ns(p, begin, noisy(p, each_ns)), begin + 1000);
	if (is_full(p))
		count_full(p, ready - begin);
	if (behind > AT_A_TIME / 4) {
		p->sums.long_reads +=
			auto_burst_read(&p->reads, (uint64_t)ready, &ns);
		p->sums.long_ns += ns;
	}
	p->ready_ns[p->made++ % 1024] = ready;
	p->sums.reads++;
	p->sums.read_ns += (uint64_t)(ready - begin);
}

/* Read ahead in bursts in the time from since_ns until now. */
static inline void make_bursts(struct plant *p, double since_ns, double each_ns)
{
	for (;;) {
		uint64_t room = p->sums.fresh + AHEAD - p->made;

		p->burst = room > 0 && (p->burst || room >= AHEAD - AT_A_TIME);
		p->sums.in_burst = p->burst && is_full(p);
		if (!p->burst || made_ns(p) >= p->now_ns)
			return;
		make_throttled(p, since_ns, each_ns);
	}
}

/* Make examples until example f has arrived. */
static inline void make_until(struct plant *p, uint64_t f, double each_ns)
{
	while (throttled(p) && p->made <= f)
		make_throttled(p, p->now_ns, each_ns);
	for (; p->made <= f; p->made++) {
		double begin = made_ns(p);
		double took = noisy(p, each_ns);

		if (p->made >= AHEAD &&
			p->used_ns[(p->made - AHEAD) % 1024] > begin)
			begin = p->used_ns[(p->made - AHEAD) % 1024];
		p->ready_ns[p->made % 1024] = begin + took;
		count_full(p, took);
	}
}

/* -- By a plan ------------------------------------------------------------- */

/* Count a run as mount/plan/plan_rate.c does. */
static inline void count_run(struct plant *p, double ns, double bytes)
{
	struct fetch_rates *r = &p->sums.rates;

	r->full_ns += (uint64_t)ns;
	r->full_bytes += (uint64_t)bytes;
	if (p->run_ns >= SAVED_NS) {
		r->long_ns += (uint64_t)ns;
		r->long_bytes += (uint64_t)bytes;
	}
	p->run_ns += ns;
}

static bool is_cached(const struct plant *p, uint64_t f)
{
	return p->cached_of && f % p->cached_of == 0;
}

/* Returns the time at which fetching can begin. The mount does not fetch while
 * its memory is full. */
static inline double planned_begin(struct plant *p, double since_ns)
{
	double begin = fmax(made_ns(p), p->rests ? since_ns : 0);

	if (p->rests || !p->made) {
		p->run_ns = 0;
		p->sums.rates.bursts++;
	}
	p->rests = false;
	return begin;
}

static inline void fetch_planned(
	struct plant *p, double since_ns, double each_ns)
{
	struct fetch_rates *r = &p->sums.rates;
	double begin = planned_begin(p, since_ns), ready = begin;
	double took = noisy(p, each_ns);

	if (p->cached_of)
		took *= (double)p->cached_of / (p->cached_of - 1);
	if (!is_cached(p, p->made)) {
		ready = throttled(p)
			? fmax(pass_ns(p, begin, took), begin + 1000)
			: begin + took;
		count_run(p, ready - begin, 1000);
		r->missing_bytes += 1000;
	}
	r->looked++;
	p->ready_ns[p->made++ % 1024] = ready;
}

/* Fetch by the plan in the time from since_ns until now. */
static inline void plan_ahead(struct plant *p, double since_ns, double each_ns)
{
	for (;;) {
		uint64_t room = p->sums.fresh + HELD - p->made;

		if (!room && made_ns(p) < p->now_ns)
			p->rests = true;
		p->sums.in_burst = !p->rests;
		if (!room || (p->rests && room < RESTS) ||
			made_ns(p) >= p->now_ns)
			return;
		fetch_planned(p, since_ns, each_ns);
	}
}

static inline void control(struct plant *p)
{
	uint64_t step, given = p->sums.fresh + PLANNED, begin;
	int rc = auto_change(&p->a, &p->s, given, &step);

	ck_assert_int_ge(rc, 0);
	if (!rc)
		return;
	begin = schedule_change_begins(&p->s);
	p->too_often |= begin < p->last_begin + p->s.spread;
	p->last_begin = begin;
	p->changes++;
	p->echoed |= p->a.asked.p > p->a.asked.q;
}

/* Run one step while the storage is slower by the ratio r. */
static inline void one_step(struct plant *p, double r)
{
	uint32_t n = schedule_next(&p->s, &p->cursor, p->slots);
	double took = noisy(p, p->down_ns);

	ck_assert_uint_eq(n, BATCH);
	if (p->spike_ns > 0 && roll(&p->dice, 100) == 0)
		took += p->spike_ns;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t f = p->slots[i].fresh;

		if (p->slots[i].echo)
			continue;
		if (!p->planned)
			make_until(p, f, r * p->down_ns / BATCH);
		while (p->made <= f)
			fetch_planned(p, p->now_ns, r * p->down_ns / BATCH);
		if (p->ready_ns[f % 1024] > p->now_ns) {
			p->waited_ns += p->ready_ns[f % 1024] - p->now_ns;
			p->now_ns = p->ready_ns[f % 1024];
		}
		p->sums.fresh++;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!p->slots[i].echo)
			p->used_ns[p->slots[i].fresh % 1024] = p->now_ns;
	p->now_ns += took;
	p->sums.trainer_ns += (uint64_t)took;
	p->sums.wait_ns = (uint64_t)p->waited_ns;
	p->sums.steps++;
	/* Make the examples that the storage makes during the step. */
	p->sums.planned = p->planned;
	if (p->planned)
		plan_ahead(p, p->now_ns - took, r * p->down_ns / BATCH);
	else if (throttled(p))
		make_bursts(p, p->now_ns - took, r * p->down_ns / BATCH);
	else
		while (p->made < p->sums.fresh + AHEAD &&
			p->ready_ns[(p->made - 1) % 1024] < p->now_ns)
			make_until(p, p->made, r * p->down_ns / BATCH);
	auto_step(&p->a, &p->sums);
	control(p);
}

static inline double echo_now(const struct plant *p)
{
	struct schedule_echo e = schedule_echo_at(&p->s, p->sums.steps);

	return (double)e.p / e.q;
}

static inline void run_until(struct plant *p, double r, uint64_t fresh)
{
	while (p->sums.fresh < fresh)
		one_step(p, r);
}

static inline double clamped(double r, double max)
{
	if (r < 1)
		return 1;
	return r < max ? r : max;
}

/* Run a phase. From three windows after its beginning on, the factor must meet
 * requirement E8. */
static inline void run_phase(
	struct plant *p, const struct phase *ph, double max)
{
	uint64_t begun = p->sums.fresh, v = p->s.spread, steps;
	double want = clamped(ph->r, max), least, ns;

	run_until(p, ph->r, begun + 3 * v);
	steps = p->sums.steps;
	ns = p->now_ns;
	while (p->sums.fresh < begun + ph->windows * v) {
		one_step(p, ph->r);
		ck_assert_msg(fabs(echo_now(p) - want) <= 0.15 * want,
			"R %.3f: e is %.3f", ph->r, echo_now(p));
	}
	least = 1 / p->down_ns;
	if (max / (ph->r * p->down_ns) < least)
		least = max / (ph->r * p->down_ns);
	ck_assert_double_ge((double)(p->sums.steps - steps) / (p->now_ns - ns),
		0.9 * least);
}

static const struct phase phases[] = {{3.8, 7}, {0.5, 7}, {1.5, 6}, {2.6, 6},
	{9, 6}, {1.25, 6}, {0.98, 6}, {1.2, 6}, {3, 6}, {1.04, 5}};

#define PHASES (sizeof(phases) / sizeof(*phases))

static inline void run_all(struct plant *p, double max)
{
	for (unsigned i = 0; i < PHASES; i++)
		run_phase(p, &phases[i], max);
	ck_assert(!p->too_often);
	ck_assert_uint_gt(p->changes, 5);
}

#endif
