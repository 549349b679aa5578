/* SPDX-License-Identifier: MIT */
/*
 * Tests of the factor of --echo auto on a mount that fetches by a plan. The
 * schedule and the measurements of the mount are real; the trainer, the memory
 * and the source are simulated. The source has a latency and a limit of
 * requests in flight, or a rate, or both. The memory has room for some items.
 * When it is full the mount stops fetching, and later fetches in a burst.
 */
#include <math.h>

#include "common/base/speed.h"
#include "loader/engine/auto.h"
#include "schedule_fixture.h"
#include "suite.h"

#define BATCH 32
#define MAX_ECHO 4.
#define DEPTH 64u
#define BURST (4 * DEPTH)
#define AHEAD 16384u /* number of examples that are remembered */
#define BYTES 110000u
#define EPOCH 1500u
#define STEP_NS (25. * NS_PER_MS)

struct plant {
	struct schedule s;
	struct schedule_cursor cursor;
	struct auto_echo a;
	struct auto_sums sums;
	struct speed speed;
	struct dice dice;
	double now_ns;
	/* The time at which each example arrives, in the order of the plan. */
	double there_ns[AHEAD];
	uint64_t looked; /* number of examples that the mount has looked up */
	/* number of examples that were reported to the loader, and their
	 * missing bytes */
	uint64_t told, told_bytes;
	/* the items to fetch, and the numbers of those that were requested,
	 * were begun, and came */
	uint64_t missing[AHEAD], asked, begun, came;
	double due_ns[AHEAD];
	bool is_missing[AHEAD];
	/* number of items that were freed since the mount stopped fetching */
	uint64_t freed;
	bool rests;
	/* Settings. */
	unsigned window; /* number of items for which the memory has room */
	/* latency of the source, and time between two of its answers */
	double latency_ns, item_ns;
	/* random part of a time: a share of the latency, or five times this
	 * share of the time between answers */
	double noise;
	/* additional delay of all answers, which happens now and then */
	double stall_ns;
	/* number of examples in the first epoch, all of which are missing */
	uint64_t epoch;
	/* share of the examples that is missing from the second epoch on */
	double share;
	bool echoed;
};

static double chance(struct plant *p)
{
	return (double)roll(&p->dice, 1 << 20) / (1 << 20);
}

static double noisy(struct plant *p, double ns, double noise)
{
	return ns * (1 + noise * (2 * chance(p) - 1));
}

static void plant_init(struct plant *p, unsigned window, uint64_t seed)
{
	struct schedule_config c = {.examples = 1 << 20,
		.batch = BATCH,
		.seed = 3,
		.echo = {1, 1},
		.echo_max = {4, 1}};
	struct error err;

	*p = (struct plant){
		.dice = {seed},
		.window = window,
		.noise = .02,
		.epoch = EPOCH,
		.share = .5,
	};
	ck_assert_int_eq(schedule_init(&p->s, &c, &err), 0);
	ck_assert_int_eq(schedule_seek(&p->s, &p->cursor, 0), 0);
	auto_init(&p->a, BATCH, 1, p->s.spread, p->s.c.echo_max, c.echo);
}

/* -- The source ------------------------------------------------------------ */

static void begin_request(struct plant *p, double at_ns)
{
	uint64_t i = p->begun++;
	double last = i ? p->due_ns[(i - 1) % AHEAD] : 0;
	double due = at_ns + noisy(p, p->latency_ns, p->noise);
	double item = noisy(p, p->item_ns, 5 * p->noise);

	if (roll(&p->dice, 4000) == 0)
		due += p->stall_ns;
	p->due_ns[i % AHEAD] = fmax(due, fmax(last, at_ns) + item);
}

static void answer(struct plant *p)
{
	uint64_t i = p->came++;
	double at_ns = p->due_ns[i % AHEAD];

	p->there_ns[p->missing[i % AHEAD] % AHEAD] = at_ns;
	speed_note(&p->speed,
		&(struct speed_answer){
			.now_ns = (uint64_t)at_ns,
			.bytes = BYTES,
			.answered = true,
			.more = p->asked - p->came,
			.depth = DEPTH,
		});
	if (p->begun < p->asked)
		begin_request(p, at_ns);
}

/* -- The mount ------------------------------------------------------------- */

static uint64_t held(const struct plant *p)
{
	return p->asked - p->freed;
}

static void look(struct plant *p)
{
	uint64_t f = p->looked++;
	bool missing = f < p->epoch || chance(p) < p->share;

	p->is_missing[f % AHEAD] = missing;
	p->there_ns[f % AHEAD] = missing ? INFINITY : 0;
	if (!missing)
		return;
	p->missing[p->asked++ % AHEAD] = f;
	if (p->begun - p->came < DEPTH)
		begin_request(p, p->now_ns);
}

static void look_ahead(struct plant *p)
{
	unsigned room = p->window - (unsigned)held(p);
	bool bursts = p->window / 2 >= DEPTH + DEPTH / 4;

	if (p->rests && room < BURST && room < p->window / 2)
		return;
	p->rests = false;
	while (held(p) < p->window && p->looked < p->sums.fresh + AHEAD / 2)
		look(p);
	p->rests = bursts && (p->asked - p->came) * 4 <= DEPTH * 3;
}

/* Answer the requests that are due at this time. */
static void pass(struct plant *p, double until_ns)
{
	while (p->came < p->begun && p->due_ns[p->came % AHEAD] <= until_ns)
		answer(p);
	p->now_ns = fmax(p->now_ns, until_ns);
}

/* -- The trainer ----------------------------------------------------------- */

static void take(struct plant *p, uint64_t f)
{
	double begun_ns = p->now_ns;

	while (p->looked <= f) {
		if (held(p) == p->window)
			pass(p, p->due_ns[p->came % AHEAD]);
		p->rests = false;
		look_ahead(p);
	}
	while (p->there_ns[f % AHEAD] == INFINITY)
		pass(p, p->due_ns[p->came % AHEAD]);
	pass(p, fmax(p->now_ns, p->there_ns[f % AHEAD]));
	p->sums.wait_ns += (uint64_t)(p->now_ns - begun_ns);
	p->freed += p->is_missing[f % AHEAD];
	p->sums.fresh++;
	look_ahead(p);
}

/* Tell the loader the missing bytes of the items before the first one that
 * waits for its reader. */
static void tell_missing(struct plant *p)
{
	while (p->told < p->looked &&
		(p->told < p->sums.fresh || !p->is_missing[p->told % AHEAD]))
		p->told_bytes += p->is_missing[p->told++ % AHEAD] ? BYTES : 0;
}

static void tell(struct plant *p)
{
	uint64_t step;
	int rc;

	tell_missing(p);
	p->sums.planned = true;
	p->sums.in_burst = p->speed.running;
	p->sums.rates = (struct fetch_rates){
		.full_ns = p->speed.full_ns,
		.full_bytes = p->speed.full_bytes,
		.long_ns = p->speed.long_ns,
		.long_bytes = p->speed.long_bytes,
		.bursts = p->speed.runs,
		.looked = p->told,
		.missing_bytes = p->told_bytes,
	};
	auto_step(&p->a, &p->sums);
	rc = auto_change(&p->a, &p->s, p->sums.fresh + 4 * BATCH, &step);
	ck_assert_int_ge(rc, 0);
	p->echoed |= p->a.asked.p > p->a.asked.q;
}

static void one_step(struct plant *p)
{
	struct schedule_slot slots[BATCH];
	uint32_t n = schedule_next(&p->s, &p->cursor, slots);

	for (uint32_t i = 0; i < n; i++)
		if (!slots[i].echo)
			take(p, slots[i].fresh);
	pass(p, p->now_ns + STEP_NS);
	look_ahead(p);
	p->sums.trainer_ns += (uint64_t)STEP_NS;
	p->sums.steps++;
	tell(p);
}

/* -- The wanted factor --------------------------------------------------- */

enum kind { DELAY, RATE, BOTH, KINDS };

/* Set the speed of the source so that a batch takes r steps, with the share of
 * missing items from the second epoch on. */
static void set_speed(struct plant *p, enum kind kind, double r)
{
	double each_ns = r * STEP_NS / (BATCH * p->share);

	p->latency_ns = kind == RATE ? NS_PER_MS : each_ns * DEPTH;
	p->item_ns = kind == DELAY ? 1000 : each_ns;
}

static void check_follows(struct plant *p, double r, unsigned windows)
{
	uint64_t v = p->s.spread, begun = p->sums.fresh, steps;
	double want = fmin(fmax(r, 1), MAX_ECHO), ns;

	while (p->sums.fresh < begun + 3 * v)
		one_step(p);
	steps = p->sums.steps;
	ns = p->now_ns;
	while (p->sums.fresh < begun + windows * v) {
		struct schedule_echo e = schedule_echo_at(&p->s, p->sums.steps);

		one_step(p);
		ck_assert_msg(fabs((double)e.p / e.q - want) <= .15 * want,
			"window %u, latency %.0f ms, R %.2f, e %.3f, %.1f "
			"windows after the change",
			p->window, p->latency_ns / 1e6, r, (double)e.p / e.q,
			(double)(p->sums.fresh - begun) / (double)v);
	}
	ck_assert_double_ge(
		(double)(p->sums.steps - steps) / (p->now_ns - ns) * STEP_NS,
		.9 * fmin(1, MAX_ECHO / r));
}

static void first_epoch(struct plant *p)
{
	while (p->sums.fresh < p->epoch)
		one_step(p);
}

/* Memory for a few more items than are requested at a time, and for many more.
 */
static const unsigned windows[] = {187, 298, 600, 2000};

#define WINDOWS (sizeof(windows) / sizeof(*windows))

static void check_steady(unsigned window, enum kind kind, double noise,
	double stall_ns, uint64_t seed)
{
	static const double rs[] = {.6, 1.3, 1.93, 2.5, 6};

	for (unsigned i = 0; i < 5; i++) {
		struct plant p;

		plant_init(&p, window, seed);
		p.noise = noise;
		p.stall_ns = stall_ns;
		set_speed(&p, kind, rs[i]);
		first_epoch(&p);
		check_follows(&p, rs[i], 12);
		ck_assert(p.echoed || rs[i] < 1);
	}
}

START_TEST(test_stays_at_r_while_the_source_keeps_its_speed)
{
	for (unsigned w = 0; w < WINDOWS; w++)
		for (enum kind k = DELAY; k < KINDS; k++)
			for (uint64_t seed = 1; seed <= 3; seed++)
				check_steady(windows[w], k, .02, 0, seed);
}
END_TEST

START_TEST(test_stays_at_r_through_noise_and_stalls)
{
	for (unsigned w = 0; w < WINDOWS; w++)
		for (enum kind k = DELAY; k < KINDS; k++)
			for (uint64_t seed = 1; seed <= 3; seed++)
				check_steady(windows[w], k, .04,
					150. * NS_PER_MS, seed);
}
END_TEST

/* `at` is the time of the change, in 16ths of a window after a multiple of a
 * window. */
static void check_changes(
	unsigned window, enum kind kind, uint64_t seed, uint64_t at)
{
	static const double rs[] = {2.5, .7, 2, 3.5, 1.5, .5, 2.5};
	struct plant p;

	plant_init(&p, window, seed);
	set_speed(&p, kind, rs[0]);
	first_epoch(&p);
	while (p.sums.fresh < EPOCH + at * p.s.spread / 16)
		one_step(&p);
	for (unsigned i = 0; i < 7; i++) {
		set_speed(&p, kind, rs[i]);
		check_follows(&p, rs[i], 6);
	}
}

START_TEST(test_follows_a_source_that_becomes_faster_or_slower)
{
	/* If the memory has room for several windows of examples, the mount
	 * measures a change of speed late. */
	for (unsigned w = 0; w + 1 < WINDOWS; w++)
		for (enum kind k = DELAY; k < KINDS; k++)
			for (uint64_t at = 0; at < 16; at += 5)
				check_changes(windows[w], k, at + 1, at);
}
END_TEST

/* The memory has room for fewer examples than a burst needs, so the speed of a
 * source that was idle cannot be measured. */
START_TEST(test_without_bursts_the_factor_falls_step_by_step)
{
	struct plant p;

	plant_init(&p, 100, 1);
	set_speed(&p, DELAY, 2.5);
	first_epoch(&p);
	check_follows(&p, 2.5, 12);
	set_speed(&p, DELAY, .7);
	for (unsigned i = 0; p.a.asked.p != p.a.asked.q; i++) {
		uint64_t until = p.sums.fresh + p.s.spread;

		ck_assert_uint_lt(i, 24);
		while (p.sums.fresh < until)
			one_step(&p);
	}
}
END_TEST

/* The memory fetches items of the second epoch as soon as it has all items of
 * the first one. */
START_TEST(test_what_the_next_epoch_finds_in_memory_is_not_this_one)
{
	for (enum kind k = DELAY; k < KINDS; k++) {
		struct plant p;

		plant_init(&p, AHEAD / 2, k + 1);
		p.epoch = 6 * p.s.spread;
		ck_assert_uint_lt(p.epoch, AHEAD / 2);
		p.share = 1;
		set_speed(&p, k, 2.5);
		p.share = 0;
		check_follows(&p, 2.5, 6);
		check_follows(&p, .1, 6);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("auto_plan");
	TCase *t = case_of(suite, "auto_plan");

	tcase_add_test(t, test_stays_at_r_while_the_source_keeps_its_speed);
	tcase_add_test(t, test_stays_at_r_through_noise_and_stalls);
	tcase_add_test(t, test_follows_a_source_that_becomes_faster_or_slower);
	tcase_add_test(t, test_without_bursts_the_factor_falls_step_by_step);
	tcase_add_test(
		t, test_what_the_next_epoch_finds_in_memory_is_not_this_one);
	return run_suite(suite);
}
