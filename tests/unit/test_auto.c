/* SPDX-License-Identifier: MIT */
/* Tests of the factor of --echo auto with a simulated storage and a simulated
 * trainer. */
#include "auto_plant.h"

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

/* All items are missing in the first part of the test, and two thirds of them
 * after that. */
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

/* The memory of the mount is full when the source becomes faster. So the mount
 * does not fetch, and does not measure the new speed. */
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

/* Simulate one more part, with eight fresh examples per step. `missing` is the
 * number of missing bytes of an example. `byte_ns` is the time to fetch a byte;
 * 0: the mount fetches nothing. */
static void fetch_missing(struct auto_echo *a, struct auto_sums *s,
	uint64_t missing, uint64_t byte_ns)
{
	uint64_t steps = a->part_fresh / 8 + 1;
	struct fetch_rates *r = &s->rates;

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
 * answers. So the parts before the last one count during the rest, too. */
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
	/* The factor follows a new speed only when it was measured twice. */
	fetch_part(&a, &s, odd);
	fetch_part(&a, &s, odd);
	for (unsigned i = 0; i < AUTO_PARTS; i++)
		fetch_part(&a, &s, 0);
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(m.up_ns / (BATCH * 500. * (double)odd), 1, .01);
}
END_TEST

/* The test begins in the state after the first epoch, which has filled the
 * cache. */
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
	/* The change happens in the middle of a part. */
	fetch_missing(&a, &s, 800, byte_ns);
	for (unsigned i = 0; i < 4; i++)
		fetch_missing(&a, &s, 500, byte_ns);
	ck_assert(auto_measured(&a, &m));
	ck_assert_double_eq_tol(
		m.up_ns / (BATCH * 500. * (double)byte_ns), 1, .15);
}
END_TEST

/* For a moment fewer bytes are missing, because the memory still has some items
 * of the last epoch. */
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

/* A loader that begins with a factor, on a mount with a plan. */
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

/* Echoing with a small factor must end as soon as echoing with a large one
 * does. The factor is 39/32 in the first epoch, in which everything is missing.
 * From the second epoch on the source is idle. */
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

/* The time to fetch a byte is measured once; after that, everything is cached.
 */
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
	/* The age of the last change takes each value that is less than a
	 * window. */
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
 * A control group's throttle lets the bytes of a tenth of a second pass at once
 * after a pause.
 */
START_TEST(test_keeps_up_with_storage_that_saves_up_while_it_is_idle)
{
	static const double rs[] = {1.3, 2, 3.5};
	/* Sizes of the throttle's bucket, in examples at R = 1: smaller ones
	 * cover no burst, larger ones cover all of some bursts. */
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

/* Returns the mean time of the reads of a burst that count; 0: none counts. */
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

	/* The source was idle, so it answers some reads at once. Then it
	 * answers one every 2 ms. */
	for (unsigned i = 0; i < 256; i++)
		at_ns[i] = now_ns += (i < 60 ? 0 : 2) * NS_PER_MS;
	ck_assert_double_eq(burst_mean(at_ns, 100), 0);
	ck_assert_double_eq(burst_mean(at_ns, 256), 2 * NS_PER_MS);
}
END_TEST

START_TEST(test_many_answers_at_a_time_are_timed_as_what_they_are)
{
	/* Repeat a burst whose 16 reads take this time. */
	static const uint64_t waits_ms[] = {20, 60, 99, 101, 150, 1000};

	for (unsigned w = 0; w < 6; w++) {
		uint64_t at_ns[256];

		for (unsigned i = 0; i < 256; i++)
			at_ns[i] = (1 + i / 16) * waits_ms[w] * NS_PER_MS +
				i % 16 * 1000;
		/* The first answer does not count, even if it comes late. */
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
