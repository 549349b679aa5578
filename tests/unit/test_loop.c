/* SPDX-License-Identifier: MIT */
/* Tests of src/common/base/loop.c. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "suite.h"

struct scene {
	struct loop l;
	struct post post[3];
	unsigned order[8], n; /* numbers of the posts that ran */
	uint64_t data;	      /* data of the last event */
	uint32_t events;
	unsigned nevents;
};

static struct scene *scene;

static void note_run(struct post *p)
{
	scene->order[scene->n++] = (unsigned)(p - scene->post);
}

static void note_event(struct loop *l, uint64_t data, uint32_t events)
{
	ck_assert_ptr_eq(l, &scene->l);
	scene->data = data;
	scene->events = events;
	scene->nevents++;
}

static void open_scene(struct scene *s)
{
	*s = (struct scene){.n = 0};
	scene = s;
	ck_assert_int_eq(loop_init(&s->l), 0);
	for (unsigned i = 0; i < 3; i++)
		post_init(&s->post[i], note_run);
}

/* Does a wait of the loop end before its time is over? */
static bool wakes(struct scene *s, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;

	loop_wait(&s->l, until_ns, note_event);
	return clock_now_ns() < until_ns;
}

START_TEST(test_loop_runs_each_post_once_and_in_order)
{
	struct scene s;

	open_scene(&s);
	loop_post(&s.l, &s.post[2]);
	loop_post(&s.l, &s.post[0]);
	loop_post(&s.l, &s.post[2]);
	ck_assert_uint_eq(loop_posted(&s.l), 2);
	ck_assert(wakes(&s, 100 * NS_PER_S));
	ck_assert(loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(s.order[0], 2);
	ck_assert_uint_eq(s.order[1], 0);
	ck_assert_uint_eq(loop_posted(&s.l), 0);
	loop_post(&s.l, &s.post[2]);
	ck_assert(loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 3);
	loop_release(&s.l);
}
END_TEST

START_TEST(test_loop_is_woken_once_for_several_posts)
{
	struct scene s;

	open_scene(&s);
	ck_assert(loop_put(&s.l, &s.post[0]));
	ck_assert(!loop_put(&s.l, &s.post[1]));
	ck_assert(loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 2);
	ck_assert(loop_put(&s.l, &s.post[0]));
	loop_release(&s.l);
}
END_TEST

START_TEST(test_loop_does_not_run_a_post_that_was_taken_back)
{
	struct scene s;

	open_scene(&s);
	loop_post(&s.l, &s.post[0]);
	loop_post(&s.l, &s.post[1]);
	loop_unpost(&s.l, &s.post[0]);
	loop_unpost(&s.l, &s.post[2]);
	ck_assert(loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.order[0], 1);
	loop_release(&s.l);
}
END_TEST

START_TEST(test_loop_is_not_woken_for_a_quiet_post)
{
	struct scene s;

	open_scene(&s);
	loop_post_quietly(&s.l, &s.post[0]);
	ck_assert(!wakes(&s, 5 * NS_PER_MS));
	/* The next post wakes the loop. */
	ck_assert(loop_put(&s.l, &s.post[1]));
	ck_assert(loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(s.order[0], 0);
	loop_release(&s.l);
}
END_TEST

START_TEST(test_loop_hands_out_events_as_they_are_watched_last)
{
	struct scene s;
	int fds[2];

	open_scene(&s);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(loop_watch(&s.l, fds[0], EPOLLIN, 7), 0);
	ck_assert(!wakes(&s, NS_PER_MS));
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	ck_assert(wakes(&s, 100 * NS_PER_S));
	ck_assert_uint_eq(s.nevents, 1);
	ck_assert_uint_eq(s.data, 7);
	ck_assert_uint_eq(s.events, EPOLLIN);
	ck_assert_int_eq(loop_watch(&s.l, fds[0], 0, 8), 0);
	ck_assert(!wakes(&s, NS_PER_MS));
	ck_assert_int_eq(loop_watch(&s.l, fds[0], EPOLLIN, 9), 0);
	loop_wait(&s.l, LOOP_NEVER, note_event);
	ck_assert_uint_eq(s.data, 9);
	loop_unwatch(&s.l, fds[0]);
	ck_assert(!wakes(&s, NS_PER_MS));
	ck_assert_uint_eq(s.nevents, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
	loop_release(&s.l);
}
END_TEST

static void *stop_loop(void *arg)
{
	loop_stop(arg);
	return NULL;
}

START_TEST(test_loop_ends_after_the_posts_when_it_is_stopped)
{
	pthread_t other;
	struct scene s;

	open_scene(&s);
	/* the post does not wake the loop */
	ck_assert(loop_put(&s.l, &s.post[0]));
	ck_assert_int_eq(pthread_create(&other, NULL, stop_loop, &s.l), 0);
	loop_wait(&s.l, LOOP_NEVER, note_event);
	ck_assert(!loop_run_posts(&s.l));
	ck_assert_uint_eq(s.n, 1);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	loop_release(&s.l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("loop");
	TCase *t = case_of(s, "loop");

	tcase_add_test(t, test_loop_runs_each_post_once_and_in_order);
	tcase_add_test(t, test_loop_is_woken_once_for_several_posts);
	tcase_add_test(t, test_loop_does_not_run_a_post_that_was_taken_back);
	tcase_add_test(t, test_loop_is_not_woken_for_a_quiet_post);
	tcase_add_test(t, test_loop_hands_out_events_as_they_are_watched_last);
	tcase_add_test(t, test_loop_ends_after_the_posts_when_it_is_stopped);
	return run_suite(s);
}
