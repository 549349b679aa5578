/* SPDX-License-Identifier: MIT */
/*
 * Plans over a real cache and an origin that the test answers: the order of
 * fetches, which items are given up, and which are held.
 */
#include "plan_fixture.h"

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
	/* There are four readers, each with two files at a time. */
	for (uint64_t i = 1; i < 97; i += 8)
		for (uint64_t j = 0; j < 8; j++)
			read_file(&k, i + (j * 3 + 5) % 8);
	finish(&k, plan, 96, 0);
	end(&k, plan);
}
END_TEST

/* Read items of a large file in this process. */
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
	/* Two items come in another order, as if the kernel reads ahead. */
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
	ck_assert_uint_eq(more.plan_readers, 2);
	/* This read is for the next position. */
	(void)plans_note(k.plans, &item, 0, SIZE, 0, &more);
	ck_assert_uint_eq(more.plan_readers, 0);
	plan_close(plan[0]);
	item = file_item(&k.g, 2, SIZE, 0);
	(void)plans_note(k.plans, &item, 0, SIZE, 0, &more);
	ck_assert_uint_eq(more.plan_readers, 1);
	end(&k, plan[1]);
}
END_TEST

START_TEST(test_what_readers_have_passed_by_is_given_up)
{
	struct course k;
	struct plan *plan;

	plan = begin(&k, "128K", 2, 40);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	/* The reader skips the first three files. */
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
	/* The plan gives items up in one step, and adds new items in another.
	 */
	WAIT_FOR(&k, plan, cursor, AHEAD + 4);
	WAIT_FOR(&k, plan, ahead_items, AHEAD);
	plan_progress(plan, 1000000);
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	WAIT_FOR(&k, plan, ahead_items, 0);
	end(&k, plan);
}
END_TEST

/* Read only the beginning of a file, as if the kernel has its other pages
 * already. */
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

/* Returns the time that three windows take in which the reader reports each
 * read. */
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
	/* Reports must come within a second. There are several attempts,
	 * because a machine may be busy. */
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
	/* Without a reader, all files come into the tier. */
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
	/* The kernel's cache has the items that were read, so each is read
	 * once. */
	for (uint64_t i = 1; i < 101; i++)
		if (i < 60 || i >= 80)
			read_file(&k, i);
	finish(&k, plan, 100, 0);
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
	ck_assert_int_eq(plan_add(plan, 1, 0), 0); /* this file is empty */
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

START_TEST(test_a_plan_may_admit_planned_files_only)
{
	struct plan_params params = {.batch = 1, .admit_planned = true};
	struct plan *plan, *other;
	struct counters *count;
	struct plans_status s;
	struct course k;

	course_start(&k, "4M");
	count = &k.g.fix.counters;
	ck_assert_int_eq(
		plan_open(k.plans, &params, &plan, &k.g.fix.err), 0);
	other = open_plan(&k, 0);
	add(plan, 0, 1, 3);
	add(other, 0, 3, 4);
	for (uint64_t i = 1; i < 7; i++)
		read_file(&k, i);
	cache_settle(k.g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(count->not_planned, 3);
	ck_assert_uint_eq(count->passed_through, 0);
	ck_assert_uint_eq(count->admitted, 3);
	plans_status(k.plans, &s);
	ck_assert_uint_eq(s.admit_planned, 1);
	plan_close(plan);
	read_file(&k, 7);
	cache_settle(k.g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(count->admitted, 4);
	plans_status(k.plans, &s);
	ck_assert_uint_eq(s.admit_planned, 0);
	end(&k, other);
}
END_TEST

START_TEST(test_a_planned_read_admits_what_another_read_has_begun)
{
	struct cache_item item;
	struct probe first, second;
	struct course k;

	course_start(&k, "4M");
	item = file_item(&k.g, 1, SIZE, 0);
	item.barred = true;
	probe_read(&k.g, &first, item, 0, SIZE);
	item.barred = false;
	probe_read(&k.g, &second, item, 0, SIZE);
	while (!__atomic_load_n(&second.done, __ATOMIC_ACQUIRE))
		answer_all(&k.g.hand);
	probe_wait(&first);
	probe_wait(&second);
	cache_settle(k.g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(k.g.fix.counters.admitted, 1);
	ck_assert_uint_eq(k.g.fix.counters.not_planned, 0);
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
	tcase_add_test(t, test_wrong_names_cost_nothing);
	tcase_add_test(t, test_plans_have_a_bound);
	tcase_add_test(t, test_a_plan_may_admit_planned_files_only);
	tcase_add_test(
		t, test_a_planned_read_admits_what_another_read_has_begun);
	return run_suite(s);
}
