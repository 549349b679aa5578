/* SPDX-License-Identifier: MIT */
/* Tests of src/loader/core/turn.c: what the end of a turn does, and when. */
#include <poll.h>
#include <string.h>

#include "common/base/clock.h"
#include "loader/core/turn.h"
#include "suite.h"

struct scene {
	struct turn t;
	unsigned begun, ended, started;
	bool mark, stop, held_at_start;
	int chosen;
};

static void scene_begin(void *arg)
{
	struct scene *s = arg;

	s->begun++;
}

static void *scene_end(void *arg)
{
	struct scene *s = arg;

	s->ended++;
	if (s->mark)
		turn_mark(&s->t, TURN_CALLERS);
	return s->chosen ? &s->chosen : NULL;
}

static void scene_start(void *arg, void *chosen)
{
	struct scene *s = arg;

	s->started += chosen == &s->chosen;
	s->held_at_start = lock_is_held(&s->t.lock);
	s->chosen = 0;
}

static const struct turn_ops scene_ops = {scene_begin, scene_end, scene_start};

static void scene_open(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	ck_assert_int_eq(turn_init(&s->t, &scene_ops, s), 0);
}

static bool scene_polls(const struct scene *s)
{
	struct pollfd p = {.fd = turn_fd(&s->t), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

START_TEST(test_turn_starts_what_was_chosen_without_the_lock)
{
	struct scene s;

	scene_open(&s);
	turn_lock(&s.t);
	ck_assert_uint_eq(s.begun, 1);
	s.chosen = 1;
	ck_assert_uint_eq(s.started, 0);
	turn_unlock(&s.t);
	ck_assert_uint_eq(s.ended, 1);
	ck_assert_uint_eq(s.started, 1);
	ck_assert(!s.held_at_start);
	turn_release(&s.t);
}
END_TEST

START_TEST(test_turn_ends_before_a_sleeper_sleeps)
{
	struct scene s;

	scene_open(&s);
	turn_lock(&s.t);
	s.chosen = 1;
	/* the call returns because work was started */
	turn_wait(&s.t, TURN_HELP);
	ck_assert_uint_eq(s.started, 1);
	ck_assert(!s.held_at_start);
	ck_assert(lock_is_held(&s.t.lock));
	turn_unlock(&s.t);
	turn_release(&s.t);
}
END_TEST

START_TEST(test_turn_wait_ends_when_its_time_has_come)
{
	struct scene s;

	scene_open(&s);
	turn_lock(&s.t);
	ck_assert(!turn_wait_until(
		&s.t, TURN_CLOSER, clock_now_ns() + NS_PER_MS));
	turn_unlock(&s.t);
	turn_release(&s.t);
}
END_TEST

static void *scene_caller(void *arg)
{
	struct scene *s = arg;

	turn_lock(&s->t);
	while (!s->mark)
		turn_wait(&s->t, TURN_CALLERS);
	turn_unlock(&s->t);
	return NULL;
}

START_TEST(test_turn_wakes_who_is_marked_at_its_end)
{
	pthread_t callers[3];
	struct scene s;

	scene_open(&s);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(
			pthread_create(&callers[i], NULL, scene_caller, &s), 0);
	turn_lock(&s.t);
	s.mark = true;
	turn_unlock(&s.t);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_join(callers[i], NULL), 0);
	turn_release(&s.t);
}
END_TEST

static void *scene_worker(void *arg)
{
	struct scene *s = arg;

	turn_lock(&s->t);
	while (!s->stop)
		turn_wait(&s->t, TURN_WORKERS);
	turn_unlock(&s->t);
	return NULL;
}

START_TEST(test_turn_wakes_as_many_workers_as_there_is_work_for)
{
	pthread_t worker;
	struct scene s;

	scene_open(&s);
	ck_assert_int_eq(pthread_create(&worker, NULL, scene_worker, &s), 0);
	turn_lock(&s.t);
	while (turn_idle(&s.t) == 0) {
		turn_unlock(&s.t);
		turn_lock(&s.t);
	}
	turn_mark_workers(&s.t, 5);
	ck_assert_uint_eq(s.t.workers, 1);
	turn_mark_workers(&s.t, 5); /* five workers are about to be woken */
	ck_assert_uint_eq(s.t.workers, 1);
	s.stop = true;
	turn_unlock(&s.t);
	ck_assert_int_eq(pthread_join(worker, NULL), 0);
	turn_release(&s.t);
}
END_TEST

START_TEST(test_turn_descriptor_polls_as_was_said_last)
{
	struct scene s;

	scene_open(&s);
	ck_assert(!scene_polls(&s));
	for (int i = 0; i < 3; i++) {
		turn_lock(&s.t);
		turn_ready(&s.t, true);
		/* the descriptor is not written while the lock is held */
		ck_assert(!scene_polls(&s));
		turn_unlock(&s.t);
		ck_assert(scene_polls(&s));
		turn_lock(&s.t);
		turn_ready(&s.t, false);
		turn_unlock(&s.t);
		ck_assert(!scene_polls(&s));
	}
	turn_release(&s.t);
}
END_TEST

#define CHANGES 2000u

/* Runs in one of two threads that change the flag. */
static void *change_ready(void *arg)
{
	struct scene *s = arg;

	for (unsigned i = 0; i < CHANGES; i++) {
		turn_lock(&s->t);
		turn_ready(&s->t, i % 3 != 0);
		turn_unlock(&s->t);
	}
	return NULL;
}

START_TEST(test_turn_descriptor_polls_right_after_changes_by_two_threads)
{
	pthread_t other;
	struct scene s;

	scene_open(&s);
	ck_assert_int_eq(pthread_create(&other, NULL, change_ready, &s), 0);
	(void)change_ready(&s);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	for (int i = 0; i < 2; i++) {
		turn_lock(&s.t);
		turn_ready(&s.t, i);
		turn_unlock(&s.t);
		ck_assert(scene_polls(&s) == (i == 1));
	}
	turn_release(&s.t);
}
END_TEST

static void *set_ready(void *arg)
{
	struct scene *s = arg;

	bool stop;

	do {
		turn_lock(&s->t);
		stop = s->stop;
		turn_ready(&s->t, !stop);
		turn_unlock(&s->t);
	} while (!stop);
	return NULL;
}

/* The other thread sets the flag. This thread clears the flag, like a caller
 * that has taken the last batch. Such a caller must not find the descriptor
 * readable afterwards. */
START_TEST(test_turn_descriptor_does_not_poll_for_who_cleared_it)
{
	pthread_t other;
	struct scene s;

	for (unsigned i = 0; i < 50; i++) {
		scene_open(&s);
		ck_assert_int_eq(
			pthread_create(&other, NULL, set_ready, &s), 0);
		while (!scene_polls(&s))
			(void)sched_yield();
		turn_lock(&s.t);
		s.stop = true; /* the flag is not set from here on */
		turn_ready(&s.t, false);
		turn_unlock(&s.t);
		ck_assert(!scene_polls(&s));
		ck_assert_int_eq(pthread_join(other, NULL), 0);
		turn_release(&s.t);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("turn");
	TCase *t = case_of(s, "turn");

	tcase_add_test(t, test_turn_starts_what_was_chosen_without_the_lock);
	tcase_add_test(t, test_turn_ends_before_a_sleeper_sleeps);
	tcase_add_test(t, test_turn_wait_ends_when_its_time_has_come);
	tcase_add_test(t, test_turn_wakes_who_is_marked_at_its_end);
	tcase_add_test(t, test_turn_wakes_as_many_workers_as_there_is_work_for);
	tcase_add_test(t, test_turn_descriptor_polls_as_was_said_last);
	tcase_add_test(t,
		test_turn_descriptor_polls_right_after_changes_by_two_threads);
	tcase_add_test(
		t, test_turn_descriptor_does_not_poll_for_who_cleared_it);
	return run_suite(s);
}
