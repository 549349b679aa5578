/* SPDX-License-Identifier: MIT */
/*
 * Plans over a real cache and an origin by hand: what is fetched in which
 * order, what is given up, what is held, whose turn it is.
 */
#include <stdio.h>
#include <unistd.h>

#include "cache_fixture.h"
#include "prefetch/plan_impl.h"
#include "prefetch/prefetch.h"
#include "suite.h"

#define SIZE 200000u /* does not fit the tier */
#define AHEAD (STAGING / 2 / SIZE)
#define GONE 666u     /* the file of this cookie */
#define LARGE 100000u /* files from this cookie on have several items */
#define LARGE_ITEMS 6u
#define LARGE_SIZE (LARGE_ITEMS * CHUNK)

struct course {
	struct rig g;
	struct plans *plans;
	struct cache_scratch *scratch;
};

static bool course_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	char path[32];

	(void)arg;
	if (cookie == GONE)
		return false;
	(void)rig_path(NULL, cookie, path, sizeof(path));
	*file = (struct cache_item){
		.digest = key_digest(path),
		.version = {.size_bytes = cookie == 0 ? 0
				: cookie >= LARGE     ? LARGE_SIZE
						      : SIZE,
			.mtime_ns = 1},
		.cookie = cookie,
	};
	return true;
}

static void course_start(struct course *k, const char *tier)
{
	struct plans_config config = {.file = course_file};

	rig_start(&k->g, tier);
	config.cache = k->g.cache;
	config.counters = &k->g.fix.counters;
	ck_assert_int_eq(plans_new(&k->plans, &config), 0);
}

static void course_stop(struct course *k)
{
	plans_free(k->plans);
	rig_stop(&k->g);
}

static struct plan *open_plan(struct course *k, uint64_t slack)
{
	struct plan_params params = {.slack = slack};
	struct plan *plan;

	ck_assert_int_eq(plan_open(k->plans, &params, &plan, &k->g.fix.err), 0);
	return plan;
}

static void add(struct plan *plan, uint64_t epoch, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		ck_assert_int_eq(plan_add(plan, epoch, i), 0);
}

/* Read a file as the fs does: note it, then read all of it. */
static void read_file(struct course *k, uint64_t cookie)
{
	struct cache_item item = file_item(&k->g, cookie, SIZE, 0);
	struct probe p;

	(void)plans_note(k->plans, &item, 0, SIZE, 0, NULL);
	probe_read(&k->g, &p, item, 0, SIZE);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&k->g.hand);
	probe_wait(&p);
	ck_assert(p.right);
}

static uint64_t field(struct plan *plan, size_t offset)
{
	struct plan_status s;

	plan_status(plan, &s);
	return *(uint64_t *)((char *)&s + offset);
}

#define STATUS(plan, name) field(plan, offsetof(struct plan_status, name))

/* Wait, while the origin answers; the test's time-out ends it. */
#define WAIT_FOR(k, plan, name, value)                                         \
	while (STATUS(plan, name) != (value)) {                                \
		answer_all(&(k)->g.hand);                                      \
		sched_yield();                                                 \
	}

static uint64_t wasted(struct course *k)
{
	return k->g.fix.counters.prefetch_wasted;
}

/* A plan for the files 1 to n. */
static struct plan *begin(
	struct course *k, const char *tier, uint64_t slack, uint64_t n)
{
	struct plan *plan;

	course_start(k, tier);
	plan = open_plan(k, slack);
	add(plan, 1, 1, n + 1);
	return plan;
}

static void end(struct course *k, struct plan *plan)
{
	plan_close(plan);
	course_stop(k);
}

static void read_files(struct course *k, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		read_file(k, i);
}

/* All is done, and so many files were fetched, and so many given up. */
static void finish(struct course *k, struct plan *plan, uint64_t fetched,
	uint64_t given_up)
{
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	ck_assert_uint_eq(k->g.fix.counters.origin_bytes, fetched * SIZE);
	ck_assert_uint_eq(wasted(k), given_up);
}

START_TEST(test_a_plan_is_fetched_in_order_up_to_its_window)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 0, 100);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	WAIT_FOR(&k, plan, cursor, AHEAD);
	while (k.g.fix.counters.passed_through < AHEAD)
		answer_all(&k.g.hand);
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, AHEAD * SIZE);
	for (uint64_t i = 1; i <= AHEAD; i++) {
		struct cache_item item = file_item(&k.g, i, SIZE, 0);
		struct probe p;

		probe_read(&k.g, &p, item, 0, 1);
		ck_assert(p.done && p.right);
	}
	end(&k, plan);
}
END_TEST

START_TEST(test_an_exact_plan_costs_each_byte_once_and_wastes_nothing)
{
	struct cache_status s;
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 0, 100);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	ck_assert_uint_eq(STATUS(plan, done), 0);
	read_files(&k, 1, 101);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	plan_close(plan);
	cache_status(k.g.cache, &s);
	ck_assert_uint_le(s.staging_peak_bytes, STAGING);
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, 100 * SIZE);
	ck_assert_uint_eq(wasted(&k), 0);
	course_stop(&k);
}
END_TEST

START_TEST(test_readers_out_of_step_waste_nothing_within_the_slack)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 8, 96);
	/* Four readers, each two files at a time. */
	for (uint64_t i = 1; i < 97; i += 8)
		for (uint64_t j = 0; j < 8; j++)
			read_file(&k, i + (j * 3 + 5) % 8);
	finish(&k, plan, 96, 0);
	end(&k, plan);
}
END_TEST

/* Items of a large file, by this process. */
static void read_items(
	struct course *k, uint64_t cookie, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct cache_item item =
			file_item(&k->g, cookie, LARGE_SIZE, i * CHUNK);
		struct probe p;

		(void)plans_note(
			k->plans, &item, item.base, CHUNK, getpid(), NULL);
		probe_read(&k->g, &p, item, 0, CHUNK);
		while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
			answer_all(&k->g.hand);
		probe_wait(&p);
		ck_assert(p.right);
	}
}

/* The reader keeps more files open than the plan has memory for. */
START_TEST(test_what_a_reader_read_before_the_plan_is_not_fetched_again)
{
	struct plan_params params = {.slack = 8, .reader = getpid()};
	const uint64_t window = STAGING / 2 / CHUNK;
	struct plan *plan;
	struct course k;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	add(plan, 1, LARGE, LARGE + 4);
	WAIT_FOR(&k, plan, fetched_items, window);
	/* Two items in another order, as from a kernel that reads ahead. */
	read_items(&k, LARGE + 2, 0, 1);
	read_items(&k, LARGE + 2, 2, 3);
	read_items(&k, LARGE + 2, 1, 2);
	read_items(&k, LARGE + 2, 3, 4);
	wait_staged(&k.g, window * CHUNK);
	read_items(&k, LARGE, 0, LARGE_ITEMS);
	read_items(&k, LARGE + 1, 0, LARGE_ITEMS);
	WAIT_FOR(&k, plan, ahead_items, window);
	read_items(&k, LARGE + 2, 4, LARGE_ITEMS);
	read_items(&k, LARGE + 3, 0, LARGE_ITEMS);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, 4 * LARGE_SIZE);
	ck_assert_uint_eq(wasted(&k), 0);
	end(&k, plan);
}
END_TEST

START_TEST(test_a_read_by_an_unknown_reader_is_shared_by_all_plans)
{
	struct plans_read more;
	struct cache_item item;
	struct plan *plan[2];
	struct course k;

	course_start(&k, "128K");
	for (int i = 0; i < 2; i++) {
		plan[i] = open_plan(&k, 8);
		add(plan[i], 0, 1, 3);
	}
	item = file_item(&k.g, 1, SIZE, 0);
	(void)plans_note(k.plans, &item, 0, SIZE, 0, &more);
	ck_assert_uint_eq(more.sharers, 2);
	/* The one that follows. */
	(void)plans_note(k.plans, &item, 0, SIZE, 0, &more);
	ck_assert_uint_eq(more.sharers, 0);
	plan_close(plan[0]);
	item = file_item(&k.g, 2, SIZE, 0);
	(void)plans_note(k.plans, &item, 0, SIZE, 0, &more);
	ck_assert_uint_eq(more.sharers, 1);
	end(&k, plan[1]);
}
END_TEST

START_TEST(test_what_readers_have_passed_by_is_given_up)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 2, 40);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	/* The first three are left out. */
	read_files(&k, 4, 41);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	WAIT_FOR(&k, plan, wasted, 3);
	ck_assert_uint_eq(wasted(&k), 3);
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, 40 * SIZE);
	end(&k, plan);
}
END_TEST

START_TEST(test_progress_retires_all_before_it)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 0, 40);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	plan_progress(plan, 4);
	WAIT_FOR(&k, plan, done, 4);
	WAIT_FOR(&k, plan, wasted, 4);
	/* Giving items up and taking new ones on are two steps. */
	WAIT_FOR(&k, plan, cursor, AHEAD + 4);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	plan_progress(plan, 1000000);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	WAIT_FOR(&k, plan, ahead_items, 0);
	end(&k, plan);
}
END_TEST

/* Read the beginning alone: the kernel has the rest already. */
static void begin_file(struct course *k, uint64_t cookie)
{
	struct cache_item item = file_item(&k->g, cookie, SIZE, 0);
	struct probe p;

	(void)plans_note(k->plans, &item, 0, 4096, 0, NULL);
	probe_read(&k->g, &p, item, 0, 4096);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&k->g.hand);
	probe_wait(&p);
}

/* The time of three windows whose reader reports each as read. */
static uint64_t three_windows_ns(void)
{
	uint64_t begin_ns = clock_now_ns();
	struct course k;
	struct plan *plan = begin(&k, "128K", 2 * AHEAD, 3 * AHEAD);

	for (uint64_t i = 0; i < 2 * AHEAD; i++) {
		if (i % AHEAD == 0)
			WAIT_FOR(&k, plan, cursor, i + AHEAD);
		begin_file(&k, i + 1);
		if (i % AHEAD == AHEAD - 1)
			plan_progress(plan, i + 1);
	}
	WAIT_FOR(&k, plan, fetched_items, 3 * AHEAD);
	while (k.g.fix.counters.origin_bytes < 3 * AHEAD * SIZE)
		answer_all(&k.g.hand);
	begin_ns = clock_now_ns() - begin_ns;
	end(&k, plan);
	return begin_ns;
}

START_TEST(test_what_its_reader_has_done_with_makes_room_at_once)
{
	/* Not a second later; a busy machine has several tries. */
	for (int i = 0; three_windows_ns() >= NS_PER_S; i++)
		ck_assert_int_lt(i, 5);
}
END_TEST

START_TEST(test_a_closed_plan_gives_all_back)
{
	struct cache_status s;
	struct course k;

	course_start(&k, "128K");
	for (int i = 0; i < 5; i++) {
		struct plan *plan = open_plan(&k, 0);

		add(plan, 1, 1, 41);
		plan_close(plan);
	}
	do {
		answer_all(&k.g.hand);
		cache_status(k.g.cache, &s);
	} while (s.planned_bytes > 0 || s.staging_bytes > 0);
	course_stop(&k);
}
END_TEST

START_TEST(test_what_is_in_a_tier_is_skipped)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "64M", 0, 40);
	/* All of it comes into the tier, with no reader. */
	while (!plan_wait(plan, NS_PER_MS))
		answer_all(&k.g.hand);
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, 40 * SIZE);
	add(plan, 2, 1, 41);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	ck_assert_uint_eq(STATUS(plan, resident), 40);
	ck_assert_uint_eq(k.g.fix.counters.origin_bytes, 40 * SIZE);
	ck_assert_uint_eq(wasted(&k), 0);
	end(&k, plan);
}
END_TEST

START_TEST(test_epochs_follow_one_another)
{
	struct course k;
	struct plan *plan;

	course_start(&k, "128K");
	plan = open_plan(&k, 4);
	for (uint64_t epoch = 1; epoch < 4; epoch++)
		add(plan, epoch, 1, 31);
	for (uint64_t epoch = 1; epoch < 4; epoch++)
		for (uint64_t i = 1; i < 31; i++)
			read_file(&k, i);
	finish(&k, plan, 90, 0);
	end(&k, plan);
}
END_TEST

START_TEST(test_a_read_far_ahead_is_somebody_elses)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 4, 100);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	read_files(&k, 60, 80);
	ck_assert_uint_eq(STATUS(plan, done), 0);
	ck_assert_uint_eq(wasted(&k), 0);
	/* Items that were read are in the kernel's cache: each is read once. */
	for (uint64_t i = 1; i < 101; i++)
		if (i < 60 || i >= 80)
			read_file(&k, i);
	finish(&k, plan, 100, 0);
	end(&k, plan);
}
END_TEST

START_TEST(test_two_plans_share_by_when_they_need)
{
	struct plan_params quick = {.batch = 1, .step_ns = NS_PER_MS};
	struct plan_params slow = {.batch = 1, .step_ns = 4 * NS_PER_MS};
	struct plan *a, *b;
	struct course k;
	uint64_t na, nb;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &slow, &b, &k.g.fix.err), 0);
	ck_assert_int_eq(plan_open(k.plans, &quick, &a, &k.g.fix.err), 0);
	add(b, 1, 1001, 1101);
	add(a, 1, 1, 101);
	/* Both readers continue, and get their items at the same rate. */
	for (uint64_t i = 1; i < 61; i++) {
		read_file(&k, i);
		if (i % 4 == 0)
			read_file(&k, 1000 + i / 4);
	}
	do {
		answer_all(&k.g.hand);
		na = STATUS(a, ahead_items);
		nb = STATUS(b, ahead_items);
	} while (na + nb < AHEAD);
	ck_assert_uint_ge(na, 7);
	ck_assert_uint_ge(nb, 1);
	ck_assert_uint_eq(wasted(&k), 0);
	plan_close(a);
	plan_close(b);
	course_stop(&k);
}
END_TEST

START_TEST(test_plans_that_are_measured_share_evenly)
{
	struct plan_params one = {.batch = 1}, four = {.batch = 4};
	struct plan *a, *b;
	struct course k;
	uint64_t na, nb;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &one, &a, &k.g.fix.err), 0);
	ck_assert_int_eq(plan_open(k.plans, &four, &b, &k.g.fix.err), 0);
	/* The reader of b waits for the origin, which serves a. */
	pthread_mutex_lock(&k.plans->lock);
	a->measured_ns = b->measured_ns = UINT64_MAX / 2;
	a->step_ns = NS_PER_MS;
	b->step_ns = 100 * NS_PER_MS;
	pthread_mutex_unlock(&k.plans->lock);
	add(a, 1, 1, 101);
	add(b, 1, 1001, 1101);
	for (uint64_t i = 1; i < 41; i++) {
		read_file(&k, i);
		read_file(&k, 1000 + i);
	}
	do {
		answer_all(&k.g.hand);
		na = STATUS(a, ahead_items);
		nb = STATUS(b, ahead_items);
	} while (na + nb < AHEAD);
	/* Those of b are needed four at a time. */
	ck_assert_uint_ge(na, AHEAD / 2 - 1);
	ck_assert_uint_ge(nb, AHEAD / 2 - 1);
	ck_assert_uint_eq(wasted(&k), 0);
	plan_close(a);
	plan_close(b);
	course_stop(&k);
}
END_TEST

START_TEST(test_time_before_the_first_read_is_not_time_of_steps)
{
	struct plan_params params = {.batch = 1};
	uint64_t now_ns = clock_now_ns();
	struct plan *plan;
	struct course k;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	pthread_mutex_lock(&k.plans->lock);
	pace_measure(plan, now_ns);
	now_ns += 10 * NS_PER_S;
	plan->front = plan->s.read = 1;
	pace_measure(plan, now_ns);
	ck_assert_uint_eq(plan->step_ns, 0);
	now_ns += NS_PER_S;
	plan->front = plan->s.read = 5;
	pace_measure(plan, now_ns);
	ck_assert_uint_eq(plan->step_ns, NS_PER_S / 4);
	pthread_mutex_unlock(&k.plans->lock);
	plan_close(plan);
	course_stop(&k);
}
END_TEST

START_TEST(test_what_steps_do_not_need_yet_comes_one_request_at_a_time)
{
	struct plan_params params = {.batch = 1, .step_ns = 3600 * NS_PER_S};
	struct course k;
	struct plan *plan;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	add(plan, 1, 1, 101);
	while (STATUS(plan, ahead_items) < AHEAD)
		sched_yield();
	ck_assert_uint_eq(k.g.hand.n, 1);
	answer(hand_take(&k.g.hand, 0), 0);
	ck_assert_uint_eq(k.g.hand.n, 1);
	/* The steps are shorter than was thought. */
	plan_step_time(plan, 1);
	answer(hand_take(&k.g.hand, 0), 0);
	ck_assert_uint_gt(k.g.hand.n, 1);
	end(&k, plan);
}
END_TEST

START_TEST(test_what_came_into_a_tier_is_used_when_it_is_read)
{
	struct plan *plan;
	struct course k;

	plan = begin(&k, "16M", 0, 20);
	WAIT_FOR(&k, plan, cursor, 20);
	WAIT_FOR(&k, plan, ahead_items, 0);
	ck_assert_uint_eq(k.g.fix.counters.prefetch_issued, 20);
	ck_assert_uint_eq(k.g.fix.counters.prefetch_used, 0);
	for (uint64_t i = 1; i < 6; i++) {
		read_file(&k, i);
		read_file(&k, i);
		ck_assert_uint_eq(k.g.fix.counters.prefetch_used, i);
	}
	/* Its owner reads it, without the mount. */
	plan_progress(plan, 13);
	ck_assert_uint_eq(k.g.fix.counters.prefetch_used, 13);
	plan_close(plan);
	ck_assert_uint_eq(wasted(&k), 0);
	course_stop(&k);
}
END_TEST

START_TEST(test_echo_makes_steps_of_fewer_examples)
{
	struct plan_params params = {.batch = 8, .echo = {2, 1}};
	struct schedule_config config = {.examples = 1,
		.batch = 8,
		.echo = {2, 1},
		.order = SCHEDULE_IN_ORDER};
	struct schedule_slot slot;
	struct schedule s;
	struct course k;
	struct plan *plan;
	uint64_t step;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	add(plan, 1, 1, 51);
	plan_progress(plan, 40);
	ck_assert_int_eq(schedule_init(&s, &config, NULL), 0);
	ck_assert_int_eq(schedule_fresh(&s, 40, &slot, &step), 0);
	ck_assert_uint_eq(STATUS(plan, step), step);
	/* And back: a step retires what no later one needs. */
	plan_progress_step(plan, step + 1);
	ck_assert_uint_eq(
		STATUS(plan, done), schedule_fresh_before(&s, step + 1));
	plan_close(plan);
	/* A window that cannot be is refused, with the size that would do. */
	params.window = 3;
	ck_assert_int_eq(
		plan_open(k.plans, &params, &plan, &k.g.fix.err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(k.g.fix.err.msg, "24"));
	course_stop(&k);
}
END_TEST

START_TEST(test_echo_changes_from_an_example_on)
{
	struct schedule_config config = {.examples = 1,
		.batch = 8,
		.echo = {1, 1},
		.echo_max = {4, 1},
		.window = 1024,
		.order = SCHEDULE_IN_ORDER};
	struct plan_params params = {.batch = 8,
		.echo = config.echo,
		.echo_max = config.echo_max,
		.window = config.window};
	struct schedule_slot slot;
	struct schedule s;
	struct course k;
	struct plan *plan;
	uint64_t step, from;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	ck_assert_int_eq(schedule_init(&s, &config, NULL), 0);
	ck_assert_int_eq(
		schedule_change(&s, 3, (struct schedule_echo){5, 2}), 0);
	from = schedule_change_begins(&s);
	ck_assert_int_eq(
		plan_echo_from(plan, from, (struct schedule_echo){5, 2}), 0);
	add(plan, 1, 1, 51);
	for (uint64_t pos = from; pos < 50; pos += 7) {
		plan_progress(plan, pos);
		ck_assert_int_eq(schedule_fresh(&s, pos, &slot, &step), 0);
		ck_assert_uint_eq(STATUS(plan, step), step);
	}
	ck_assert_int_eq(
		plan_echo_from(plan, 2000, (struct schedule_echo){5, 1}),
		-EINVAL);
	end(&k, plan);
}
END_TEST

/* Positions that count as looked up, and how many of them missed a file. */
static void check_missing(struct plan *plan, uint64_t looked, uint64_t missing)
{
	struct plan_rates rates;

	plan_rates(plan, &rates);
	ck_assert_uint_eq(rates.looked, looked);
	ck_assert_uint_eq(rates.missing_bytes, missing * SIZE);
}

START_TEST(test_a_plan_that_is_measured_has_no_time)
{
	struct plan_params params = {
		.batch = 1, .step_ns = 3600 * NS_PER_S, .measure = true};
	struct plan_rates rates;
	struct course k;
	struct plan *plan;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	plan_rates(plan, &rates);
	ck_assert_uint_eq(rates.looked, 0);
	add(plan, 1, 1, 101);
	while (STATUS(plan, ahead_items) < AHEAD)
		sched_yield();
	ck_assert_uint_gt(k.g.hand.n, 1);
	do
		plan_rates(plan, &rates);
	while (!rates.full);
	ck_assert_uint_eq(rates.looked, 0);
	ck_assert_uint_eq(rates.long_bytes, 0);
	/* The first files that are read tell nothing about what is missing. */
	read_files(&k, AHEAD + 5, AHEAD + 9);
	read_files(&k, 1, AHEAD + 1);
	WAIT_FOR(&k, plan, cursor, 2 * AHEAD + 4);
	check_missing(plan, AHEAD, AHEAD);
	read_files(&k, AHEAD + 1, AHEAD + 5);
	read_files(&k, AHEAD + 9, 2 * AHEAD + 5);
	WAIT_FOR(&k, plan, cursor, 3 * AHEAD + 4);
	check_missing(plan, 2 * AHEAD, 2 * AHEAD);
	end(&k, plan);
}
END_TEST

/* Memory has the items of the second epoch before the first one is read. */
START_TEST(test_what_a_later_epoch_misses_counts_when_it_is_read)
{
	struct plan_params params = {.slack = 4 * AHEAD, .measure = true};
	const uint64_t n = AHEAD - 2;
	struct course k;
	struct plan *plan;

	course_start(&k, "128K");
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	for (uint64_t epoch = 1; epoch < 3; epoch++)
		add(plan, epoch, 1, n + 1);
	WAIT_FOR(&k, plan, cursor, 2 * n);
	for (uint64_t i = 0; i < n; i++) {
		check_missing(plan, i, i);
		read_file(&k, i + 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		check_missing(plan, n + i, n);
		read_file(&k, i + 1);
	}
	check_missing(plan, 2 * n, n);
	finish(&k, plan, n, 0);
	end(&k, plan);
}
END_TEST

START_TEST(test_what_is_in_a_tier_counts_up_to_what_is_held)
{
	struct plan_params params = {.slack = 4 * AHEAD, .measure = true};
	struct course k;
	struct plan *plan;

	course_start(&k, "4M");
	read_files(&k, 1, 6);
	cache_settle(k.g.cache, 10 * NS_PER_S);
	ck_assert_int_eq(plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	add(plan, 1, 1, 6);
	add(plan, 1, 101, 103);
	while (STATUS(plan, cursor) < 7)
		sched_yield();
	check_missing(plan, 5, 0);
	WAIT_FOR(&k, plan, ahead_items, 0);
	check_missing(plan, 7, 2);
	end(&k, plan);
}
END_TEST

START_TEST(test_wrong_names_cost_nothing)
{
	struct course k;
	struct plan *plan;

	course_start(&k, "128K");
	plan = open_plan(&k, 0);
	ck_assert_int_eq(plan_add(plan, 1, GONE), 0);
	ck_assert_int_eq(plan_add(plan, 1, 0), 0); /* is empty */
	ck_assert_int_eq(plan_add(plan, 1, 7), 0);
	ck_assert_int_eq(plan_add(plan, 1, 7), -EEXIST);
	ck_assert_int_eq(plan_add(plan, 2, 7), 0);
	ck_assert_int_eq(plan_add(plan, 1, 8), -EINVAL);
	WAIT_FOR(&k, plan, gone, 1);
	read_file(&k, 7);
	plans_forget(k.plans, 7);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	end(&k, plan);
}
END_TEST

START_TEST(test_plans_have_a_bound)
{
	struct plan_params params = {.batch = 1};
	struct plan *plan[PLANS_MAX + 1];
	struct course k;

	course_start(&k, "128K");
	for (unsigned i = 0; i < PLANS_MAX; i++)
		plan[i] = open_plan(&k, 0);
	ck_assert_int_eq(
		plan_open(k.plans, &params, &plan[PLANS_MAX], &k.g.fix.err),
		-EUSERS);
	for (unsigned i = 0; i < PLANS_MAX; i++)
		plan_close(plan[i]);
	course_stop(&k);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan");
	TCase *t = case_of(s, "plan");

	tcase_add_test(t, test_a_plan_is_fetched_in_order_up_to_its_window);
	tcase_add_test(
		t, test_an_exact_plan_costs_each_byte_once_and_wastes_nothing);
	tcase_add_test(
		t, test_readers_out_of_step_waste_nothing_within_the_slack);
	tcase_add_test(t,
		test_what_a_reader_read_before_the_plan_is_not_fetched_again);
	tcase_add_test(
		t, test_a_read_by_an_unknown_reader_is_shared_by_all_plans);
	tcase_add_test(t, test_what_readers_have_passed_by_is_given_up);
	tcase_add_test(t, test_progress_retires_all_before_it);
	tcase_add_test(
		t, test_what_its_reader_has_done_with_makes_room_at_once);
	tcase_add_test(t, test_a_closed_plan_gives_all_back);
	tcase_add_test(t, test_what_is_in_a_tier_is_skipped);
	tcase_add_test(t, test_epochs_follow_one_another);
	tcase_add_test(t, test_a_read_far_ahead_is_somebody_elses);
	tcase_add_test(t, test_two_plans_share_by_when_they_need);
	tcase_add_test(t, test_plans_that_are_measured_share_evenly);
	tcase_add_test(t, test_time_before_the_first_read_is_not_time_of_steps);
	tcase_add_test(
		t, test_what_steps_do_not_need_yet_comes_one_request_at_a_time);
	tcase_add_test(t, test_what_came_into_a_tier_is_used_when_it_is_read);
	tcase_add_test(t, test_echo_makes_steps_of_fewer_examples);
	tcase_add_test(t, test_echo_changes_from_an_example_on);
	tcase_add_test(t, test_a_plan_that_is_measured_has_no_time);
	tcase_add_test(
		t, test_what_a_later_epoch_misses_counts_when_it_is_read);
	tcase_add_test(t, test_what_is_in_a_tier_counts_up_to_what_is_held);
	tcase_add_test(t, test_wrong_names_cost_nothing);
	tcase_add_test(t, test_plans_have_a_bound);
	return run_suite(s);
}
