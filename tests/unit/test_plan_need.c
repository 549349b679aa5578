/* SPDX-License-Identifier: MIT */
/*
 * Plans over a real cache and an origin that the test answers: which plan is
 * served, which items steps need and when, and what is counted.
 */
#include "plan_fixture.h"

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
	/* The items of b are needed four at a time. */
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
	/* The steps are shorter than estimated. */
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
	/* The owner of the plan reads the item without the mount. */
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
	/* Report the progress as steps: a step retires the items that no later
	 * step needs. */
	plan_progress_step(plan, step + 1);
	ck_assert_uint_eq(
		STATUS(plan, done), schedule_fresh_before(&s, step + 1));
	plan_close(plan);
	/* An impossible window is refused, with the required size. */
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

/* Check the number of positions that count as looked up, and how many of them
 * missed. */
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
	/* The first reads of a plan do not count as looked up. */
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

/* The memory has the items of the second epoch before the first epoch has been
 * read. */
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

int main(void)
{
	Suite *s = suite_create("plan-need");
	TCase *t = case_of(s, "need");

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
	return run_suite(s);
}
