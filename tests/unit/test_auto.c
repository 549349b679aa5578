/* SPDX-License-Identifier: MIT */
/*
 * The echo factor that is found: a real schedule, and a storage and a trainer
 * that are only simulated, so that speeds are exact and nothing takes time.
 * Storage makes one example after the other, at most so many ahead of the
 * trainer; a step waits for its fresh examples.
 */
#include <math.h>

#include "auto/auto.h"
#include "schedule_fixture.h"
#include "suite.h"

#define BATCH 32
#define AHEAD (64 + 372) /* examples that are made before they are needed */
#define AT_A_TIME 64
#define PLANNED (4 * BATCH) /* ahead of the trainer */
#define DOWN_NS 10000000.
/* The number of items that a mount with a plan holds; it rests when all of them
 * have come. */
#define HELD 600
#define RESTS 256
#define SAVED_NS (150. * NS_PER_MS)
#define MAX_ECHO 4.

/* How R goes on, in windows of V fresh examples. */
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
	double noise;	 /* share of each time, either way */
	double spike_ns; /* now and then, of a step */
	double ready_ns[1024], used_ns[1024]; /* of the last examples */
	/*
	 * Storage that is throttled: what it was idle it makes up for, so long
	 * at most. Then what is ahead is read in bursts.
	 */
	double bucket_ns, due_ns;
	/*
	 * Or as a control group's throttle does: what may pass in a slice of
	 * time passes at its beginning; the first begins after idle time.
	 */
	double slice_ns, slices_ns, passed_ns;
	double down_ns; /* a step */
	struct auto_burst reads;
	bool burst;
	/* A mount fetches by a plan; one example in so many is cached. */
	bool planned, rests;
	unsigned cached_of;
	double run_ns;
	uint64_t made;
	double now_ns, waited_ns;
	uint64_t changes, last_begin;
	bool too_often, echoed;
};

static void plant_init(struct plant *p, double noise, double max)
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

static double noisy(struct plant *p, double ns)
{
	double x = (double)roll(&p->dice, 2001) / 1000 - 1;

	return ns * (1 + p->noise * x);
}

static void count_full(struct plant *p, double ns)
{
	p->sums.full_ns += (uint64_t)ns;
	p->sums.full_reads++;
}

static double made_ns(const struct plant *p)
{
	return p->made ? p->ready_ns[(p->made - 1) % 1024] : 0;
}

static bool throttled(const struct plant *p)
{
	return p->bucket_ns > 0 || p->slice_ns > 0;
}

/* When what is asked for then is there. */
static double pass_ns(struct plant *p, double begin, double each_ns)
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

/* The next example, at the earliest then. */
static void make_throttled(struct plant *p, double begin, double each_ns)
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

/* In the time until now. */
static void make_bursts(struct plant *p, double since_ns, double each_ns)
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

/* Until example f is there. */
static void make_until(struct plant *p, uint64_t f, double each_ns)
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

/* Count like prefetch/plan_rate.c. */
static void count_run(struct plant *p, double ns, double bytes)
{
	struct auto_rates *r = &p->sums.rates;

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

/* Fetching begins no sooner; when the memory is used up it rests. */
static double planned_begin(struct plant *p, double since_ns)
{
	double begin = fmax(made_ns(p), p->rests ? since_ns : 0);

	if (p->rests || !p->made) {
		p->run_ns = 0;
		p->sums.rates.bursts++;
	}
	p->rests = false;
	return begin;
}

static void fetch_planned(struct plant *p, double since_ns, double each_ns)
{
	struct auto_rates *r = &p->sums.rates;
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

/* In the time from then until now. */
static void plan_ahead(struct plant *p, double since_ns, double each_ns)
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

static void control(struct plant *p)
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

/* One step with an upstream of ratio r. */
static void one_step(struct plant *p, double r)
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
	/* What is made meanwhile, as far as it may be. */
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

static double echo_now(const struct plant *p)
{
	struct schedule_echo e = schedule_echo_at(&p->s, p->sums.steps);

	return (double)e.p / e.q;
}

static void run_until(struct plant *p, double r, uint64_t fresh)
{
	while (p->sums.fresh < fresh)
		one_step(p, r);
}

static double clamped(double r, double max)
{
	if (r < 1)
		return 1;
	return r < max ? r : max;
}

/* Three windows after its beginning a phase has what E8 asks for. */
static void run_phase(struct plant *p, const struct phase *ph, double max)
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

static void run_all(struct plant *p, double max)
{
	for (unsigned i = 0; i < PHASES; i++)
		run_phase(p, &phases[i], max);
	ck_assert(!p->too_often);
	ck_assert_uint_gt(p->changes, 5);
}

START_TEST(test_follows_every_change_of_speed_within_three_windows)
{
	struct plant p;

	plant_init(&p, 0, MAX_ECHO);
	run_all(&p, MAX_ECHO);
}
END_TEST

START_TEST(test_follows_through_noise_of_a_seventh)
{
	struct plant p;

	plant_init(&p, 1 / 7., MAX_ECHO);
	run_all(&p, MAX_ECHO);
}
END_TEST

START_TEST(test_follows_storage_that_is_throttled)
{
	struct plant p;

	plant_init(&p, 0.05, MAX_ECHO);
	p.bucket_ns = 30 * DOWN_NS / BATCH;
	run_all(&p, MAX_ECHO);
}
END_TEST

static void follow_slices(unsigned i, bool planned)
{
	static const struct phase speeds[] = {
		{3.5, 7}, {1.5, 7}, {0.7, 6}, {2.5, 7}, {1.2, 7}, {3.8, 7}};
	static const double steps_ms[] = {20, 40, 200};
	struct plant p;

	plant_init(&p, 0.05, MAX_ECHO);
	p.planned = planned;
	p.down_ns = steps_ms[i % 3] * NS_PER_MS;
	p.slice_ns = 100. * NS_PER_MS;
	run_until(&p, 1, (i + 1) * p.s.spread / 16);
	for (unsigned k = 0; k < sizeof(speeds) / sizeof(*speeds); k++)
		run_phase(&p, &speeds[k], MAX_ECHO);
}

START_TEST(test_follows_storage_that_is_throttled_by_slices)
{
	for (unsigned i = 0; i < 3 * 16; i++)
		follow_slices(i, false);
}
END_TEST

/* All missing, then two thirds. */
START_TEST(test_follows_a_mount_that_fetches_by_a_plan)
{
	for (unsigned cached_of = 0; cached_of <= 3; cached_of += 3) {
		struct plant p;

		plant_init(&p, 0.05, MAX_ECHO);
		p.planned = true;
		p.cached_of = cached_of;
		run_all(&p, MAX_ECHO);
	}
}
END_TEST

START_TEST(test_follows_throttled_storage_by_a_plan)
{
	for (unsigned i = 0; i < 3 * 16; i++)
		follow_slices(i, true);
}
END_TEST

/* Its memory is full when the source becomes faster, which nobody sees. */
START_TEST(test_finds_out_when_the_source_of_a_plan_is_faster_at_rest)
{
	struct plant p;

	plant_init(&p, 0, MAX_ECHO);
	p.planned = true;
	run_until(&p, 2, 4 * p.s.spread);
	p.made = p.sums.fresh + HELD;
	for (uint64_t f = p.sums.fresh; f < p.made; f++)
		p.ready_ns[f % 1024] = p.now_ns;
	p.rests = true;
	run_phase(&p, &(struct phase){0.7, 6}, MAX_ECHO);
}
END_TEST

/* One more part of eight fresh examples a step, so much of each missing, and
 * fetched in so much time a byte; 0: the mount rests. */
static void fetch_missing(struct auto_echo *a, struct auto_sums *s,
	uint64_t missing, uint64_t byte_ns)
{
	uint64_t steps = a->part_fresh / 8 + 1;
	struct auto_rates *r = &s->rates;

	if (!byte_ns)
		steps *= 4;
	s->planned = true;
	s->steps += steps;
	s->fresh += steps * 8;
	s->trainer_ns += steps * 10 * NS_PER_MS;
	r->looked += steps * 8;
	r->missing_bytes += steps * 8 * missing;
	if (byte_ns) {
		r->full_bytes += steps * 8 * missing;
		r->full_ns += steps * 8 * missing * byte_ns;
		r->long_bytes = r->full_bytes;
		r->long_ns = r->full_ns;
	}
	auto_step(a, s);
}

static void fetch_part(
	struct auto_echo *a, struct auto_sums *s, uint64_t byte_ns)
{
	fetch_missing(a, s, 500, byte_ns);
}

/* The last part before a rest may have begun or ended within a group of
 * answers: the rest goes by those before it, too. */
START_TEST(test_one_odd_part_is_not_the_speed_of_a_source_at_rest)
{
	const uint64_t right = 1000, odd = 1250;
	struct auto_sums s = {0};
	struct auto_echo a;
	struct auto_part m;

	auto_init(&a, BATCH, 1, 992, (struct schedule_echo){4, 1},
		(struct schedule_echo){4, 1});
	auto_step(&a, &s);
	for (unsigned i = 0; i < 6; i++)
		fetch_part(&a, &s, right);
	fetch_part(&a, &s, odd);
	for (unsigned i = 0; i < AUTO_PARTS; i++)
		fetch_part(&a, &s, 0);
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(
		m.up_ns / (BATCH * 500. * (double)right), 1, .01);
	/* Another speed is known when it is seen twice. */
	fetch_part(&a, &s, odd);
	fetch_part(&a, &s, odd);
	for (unsigned i = 0; i < AUTO_PARTS; i++)
		fetch_part(&a, &s, 0);
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(m.up_ns / (BATCH * 500. * (double)odd), 1, .01);
}
END_TEST

/* The state after the first epoch, which has filled the cache. */
START_TEST(test_a_share_that_is_cached_from_now_on_is_known_soon)
{
	const uint64_t byte_ns = 1000;
	struct auto_sums s = {0};
	struct auto_echo a;
	struct auto_part m;

	auto_init(&a, BATCH, 1, 992, (struct schedule_echo){4, 1},
		(struct schedule_echo){4, 1});
	auto_step(&a, &s);
	for (unsigned i = 0; i < AUTO_PARTS; i++)
		fetch_missing(&a, &s, 1000, byte_ns);
	/* The change is within a part. */
	fetch_missing(&a, &s, 800, byte_ns);
	for (unsigned i = 0; i < 4; i++)
		fetch_missing(&a, &s, 500, byte_ns);
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(
		m.up_ns / (BATCH * 500. * (double)byte_ns), 1, .15);
}
END_TEST

/* What the last epoch has left in memory is missing less, for a moment. */
START_TEST(test_two_looks_at_what_is_carried_over_change_little)
{
	struct auto_sums s = {0};
	struct auto_echo a;
	struct auto_part m;

	auto_init(&a, BATCH, 1, 992, (struct schedule_echo){4, 1},
		(struct schedule_echo){4, 1});
	auto_step(&a, &s);
	for (unsigned i = 0; i < AUTO_PARTS; i++)
		fetch_missing(&a, &s, 500, 1000);
	for (unsigned i = 0; i < 6; i++) {
		fetch_missing(&a, &s, i < 2 ? 380 : 500, 1000);
		if (auto_measured(&a, &m))
			ck_assert_double_eq_tol(
				m.up_ns / (BATCH * 500. * 1000), 1, .1);
	}
}
END_TEST

/* A loader that begins with this factor, on a mount with a plan. */
struct planned_run {
	struct schedule s;
	struct auto_sums sums;
	struct auto_echo a;
};

static void run_begin(struct planned_run *r, uint32_t p, uint32_t q)
{
	struct schedule_config c = {.examples = 1 << 20,
		.batch = BATCH,
		.seed = 3,
		.echo = {p, q},
		.echo_max = {4, 1}};
	struct error err;

	r->sums = (struct auto_sums){0};
	ck_assert_int_eq(schedule_init(&r->s, &c, &err), 0);
	auto_init(&r->a, BATCH, 1, r->s.spread, c.echo_max, c.echo);
	auto_step(&r->a, &r->sums);
}

/*
 * A small factor is as soon gone as a large one: 39/32 in the first epoch,
 * which misses everything, and a source at rest from the second one on.
 */
START_TEST(test_echoing_little_ends_soon_after_the_first_epoch)
{
	const uint64_t byte_ns = 381; /* R is 1.22, then 0.61 */
	struct planned_run r;
	uint64_t before, step;

	run_begin(&r, 39, 32);
	for (unsigned i = 0; i < 2 * AUTO_PARTS; i++)
		fetch_missing(&r.a, &r.sums, 1000, byte_ns);
	ck_assert_int_eq(auto_change(&r.a, &r.s, r.sums.fresh, &step), 0);
	before = r.sums.fresh;
	for (unsigned i = 0; r.a.asked.p != r.a.asked.q; i++) {
		fetch_missing(&r.a, &r.sums, 500, i < 2 ? byte_ns : 0);
		ck_assert_int_ge(
			auto_change(&r.a, &r.s, r.sums.fresh, &step), 0);
		ck_assert_uint_le(r.sums.fresh - before, 2 * r.s.spread);
	}
}
END_TEST

/* One time of a byte, and then all is cached. */
START_TEST(test_a_single_time_does_not_hold_the_factor)
{
	struct planned_run r;
	uint64_t before, step;

	run_begin(&r, 4, 1);
	fetch_missing(&r.a, &r.sums, 1000, 4000);
	ck_assert_uint_eq(r.a.byte_ns.n, 1);
	before = r.sums.fresh;
	while (r.a.asked.p != r.a.asked.q) {
		fetch_missing(&r.a, &r.sums, 0, 0);
		ck_assert_int_ge(
			auto_change(&r.a, &r.s, r.sums.fresh, &step), 0);
		ck_assert_uint_le(r.sums.fresh - before, 3 * r.s.spread);
	}
}
END_TEST

START_TEST(test_a_plan_never_echoes_when_r_is_at_most_one)
{
	static const double rs[] = {0.1, 0.9, 1, 1.04};

	for (unsigned i = 0; i < 4; i++) {
		struct plant p;

		plant_init(&p, 0.1, MAX_ECHO);
		p.planned = true;
		run_until(&p, rs[i], 20 * p.s.spread);
		ck_assert_msg(!p.echoed, "R %.3f: echoed", rs[i]);
	}
}
END_TEST

START_TEST(test_goes_up_to_the_highest_factor_that_is_allowed)
{
	struct plant p;

	plant_init(&p, 0.05, 8.5);
	run_phase(&p, &(struct phase){30, 6}, 8.5);
	ck_assert_double_eq(echo_now(&p), 8.5);
}
END_TEST

START_TEST(test_follows_wherever_in_a_window_the_speed_changes)
{
	/* The last change is then of any age below a window. */
	for (uint64_t at = 0; at < 16; at++) {
		struct plant p;

		plant_init(&p, 0.05, MAX_ECHO);
		run_until(&p, 3.8, 3 * p.s.spread);
		run_until(&p, 1.5, (48 + at) * p.s.spread / 16);
		run_phase(&p, &(struct phase){3.2, 5}, MAX_ECHO);
		run_phase(&p, &(struct phase){0.7, 5}, MAX_ECHO);
	}
}
END_TEST

START_TEST(test_never_echoes_when_r_is_at_most_one)
{
	static const double rs[] = {0.1, 0.9, 1, 1.04};

	for (unsigned i = 0; i < 4; i++) {
		struct plant p;

		plant_init(&p, 0.1, MAX_ECHO);
		run_until(&p, rs[i], 20 * p.s.spread);
		ck_assert_msg(!p.echoed, "R %.3f: echoed", rs[i]);
	}
}
END_TEST

START_TEST(test_lets_a_few_long_steps_pass)
{
	struct plant p;

	plant_init(&p, 0.05, MAX_ECHO);
	run_until(&p, 2, 4 * p.s.spread);
	p.changes = 0;
	p.spike_ns = 2 * DOWN_NS;
	run_until(&p, 2, 20 * p.s.spread);
	ck_assert_uint_le(p.changes, 1);
	ck_assert_double_ge(echo_now(&p), 1.7);
	ck_assert_double_le(echo_now(&p), 2.3);
}
END_TEST

START_TEST(test_stays_where_it_is_when_nothing_changes)
{
	struct plant p;

	plant_init(&p, 0.1, MAX_ECHO);
	run_until(&p, 2.5, 2 * p.s.spread);
	for (uint64_t i = 3; i <= 40; i++) {
		run_until(&p, 2.5, i * p.s.spread);
		ck_assert_double_eq_tol(echo_now(&p), 2.5, 0.1);
	}
	ck_assert_uint_le(p.changes, 10);
}
END_TEST

/*
 * A control group's throttle lets a tenth of a second's bytes pass at once
 * after a pause.
 */
START_TEST(test_keeps_up_with_storage_that_saves_up_while_it_is_idle)
{
	static const double rs[] = {1.3, 2, 3.5};
	/* In examples at R = 1: none of a burst to all of some. */
	static const double buckets[] = {1, 20, 60, 200, 300};

	for (unsigned i = 0; i < 15; i++) {
		struct plant p;
		double r = rs[i % 3], begun, before;

		plant_init(&p, 0.1, MAX_ECHO);
		p.bucket_ns = buckets[i / 3] * DOWN_NS / BATCH;
		run_until(&p, r, 3 * p.s.spread);
		before = p.waited_ns;
		begun = p.now_ns;
		run_until(&p, r, 60 * p.s.spread);
		ck_assert_double_le(
			p.waited_ns - before, 0.025 * (p.now_ns - begun));
	}
}
END_TEST

/* The mean of what is counted of a burst; 0: nothing is. */
static double burst_mean(const uint64_t *at_ns, unsigned n)
{
	struct auto_burst b = {0};
	uint64_t sum_ns = 0, reads = 0, ns;

	for (unsigned i = 0; i < n; i++) {
		reads += auto_burst_read(&b, at_ns[i], &ns);
		sum_ns += ns;
	}
	return reads ? (double)sum_ns / (double)reads : 0;
}

START_TEST(test_the_beginning_of_a_burst_says_nothing)
{
	uint64_t at_ns[256], now_ns = 7 * NS_PER_MS;

	/* Saved-up requests are answered at once, the others every 2 ms. */
	for (unsigned i = 0; i < 256; i++)
		at_ns[i] = now_ns += (i < 60 ? 0 : 2) * NS_PER_MS;
	ck_assert_double_eq(burst_mean(at_ns, 100), 0);
	ck_assert_double_eq(burst_mean(at_ns, 256), 2 * NS_PER_MS);
}
END_TEST

START_TEST(test_many_answers_at_a_time_are_timed_as_what_they_are)
{
	/* 16 reads in all that long, each time. */
	static const uint64_t waits_ms[] = {20, 60, 99, 101, 150, 1000};

	for (unsigned w = 0; w < 6; w++) {
		uint64_t at_ns[256];

		for (unsigned i = 0; i < 256; i++)
			at_ns[i] = (1 + i / 16) * waits_ms[w] * NS_PER_MS +
				i % 16 * 1000;
		/* The first answer, however late it is. */
		ck_assert_double_eq(burst_mean(at_ns, 16), 0);
		ck_assert_double_eq_tol(burst_mean(at_ns, 256),
			(double)(waits_ms[w] * NS_PER_MS) / 16, 1000);
	}
}
END_TEST

START_TEST(test_takes_the_slower_of_reading_and_decoding)
{
	struct auto_echo a;
	struct auto_sums sums = {0};
	struct auto_part m;

	auto_init(&a, 10, 4, 80, (struct schedule_echo){4, 1},
		(struct schedule_echo){1, 1});
	for (unsigned i = 0; i < 200; i++) {
		auto_step(&a, &sums);
		sums.steps++;
		sums.fresh += 5;
		sums.full_ns += 500;
		sums.full_reads += 5;
		sums.decode_ns += 4 * 5 * 300;
		sums.decodes += 5;
		sums.trainer_ns += 900;
		sums.augment_ns += 4 * 100;
	}
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(m.up_ns, 3000, 1e-6);
	ck_assert_double_eq_tol(m.down_ns, 1000, 1e-6);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		test_follows_every_change_of_speed_within_three_windows,
		test_follows_through_noise_of_a_seventh,
		test_follows_storage_that_is_throttled,
		test_follows_storage_that_is_throttled_by_slices,
		test_follows_a_mount_that_fetches_by_a_plan,
		test_follows_throttled_storage_by_a_plan,
		test_finds_out_when_the_source_of_a_plan_is_faster_at_rest,
		test_one_odd_part_is_not_the_speed_of_a_source_at_rest,
		test_a_share_that_is_cached_from_now_on_is_known_soon,
		test_two_looks_at_what_is_carried_over_change_little,
		test_echoing_little_ends_soon_after_the_first_epoch,
		test_a_single_time_does_not_hold_the_factor,
		test_a_plan_never_echoes_when_r_is_at_most_one,
		test_goes_up_to_the_highest_factor_that_is_allowed,
		test_follows_wherever_in_a_window_the_speed_changes,
		test_never_echoes_when_r_is_at_most_one,
		test_lets_a_few_long_steps_pass,
		test_stays_where_it_is_when_nothing_changes,
		test_keeps_up_with_storage_that_saves_up_while_it_is_idle,
		test_the_beginning_of_a_burst_says_nothing,
		test_many_answers_at_a_time_are_timed_as_what_they_are,
		test_takes_the_slower_of_reading_and_decoding,
	};
	Suite *s = suite_create("auto");
	TCase *tc = case_of(s, "simulated");

	case_add(tc, tests, sizeof(tests) / sizeof(*tests));
	return s;
}

int main(void)
{
	return run_suite(suite());
}
