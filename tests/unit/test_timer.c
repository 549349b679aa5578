/* SPDX-License-Identifier: MIT */
/* Tests of common/base/timer: order, moving, cancelling, many setters. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/timer.h"
#include "suite.h"

#define N 200

struct probe {
	struct timer timer;
	struct bench *bench;
	unsigned fired;	  /* guarded by the lock of the bench */
	uint64_t late_ns; /* guarded by the lock of the bench */
};

struct bench {
	struct timers *timers;
	pthread_mutex_t lock;
	pthread_cond_t some;
	unsigned fired;		/* guarded by the lock */
	struct probe *order[N]; /* guarded by the lock */
	struct probe probes[N];
};

static void on_fire(struct timer *t)
{
	struct probe *p = CONTAINER_OF(t, struct probe, timer);
	struct bench *b = p->bench;

	pthread_mutex_lock(&b->lock);
	p->late_ns = clock_now_ns() - t->at_ns;
	p->fired++;
	if (b->fired < N)
		b->order[b->fired] = p;
	b->fired++;
	pthread_cond_signal(&b->some);
	pthread_mutex_unlock(&b->lock);
}

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->some, NULL);
	ck_assert_int_eq(timers_new(&b->timers), 0);
	for (size_t i = 0; i < N; i++) {
		b->probes[i].bench = b;
		timer_init(&b->probes[i].timer, on_fire);
	}
	return b;
}

static void bench_free(struct bench *b)
{
	timers_free(b->timers);
	pthread_cond_destroy(&b->some);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void bench_wait(struct bench *b, unsigned fired)
{
	pthread_mutex_lock(&b->lock);
	while (b->fired < fired)
		pthread_cond_wait(&b->some, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

START_TEST(test_timers_fire_in_order_of_time_and_never_early)
{
	struct bench *b = bench_new();
	/* At this time all timers are set, even under valgrind. */
	uint64_t base_ns = clock_now_ns() + 200 * NS_PER_MS;

	for (size_t i = 0; i < N; i++)
		timer_set(b->timers, &b->probes[i].timer,
			base_ns + i * 7919 % N * 10000);
	bench_wait(b, N);
	for (size_t i = 0; i < N; i++) {
		ck_assert_uint_eq(b->probes[i].fired, 1);
		/* The difference would wrap round if a timer had fired early.
		 */
		ck_assert_uint_lt(b->probes[i].late_ns, 60 * NS_PER_S);
		if (i > 0)
			ck_assert_uint_gt(b->order[i]->timer.at_ns,
				b->order[i - 1]->timer.at_ns);
	}
	bench_free(b);
}
END_TEST

START_TEST(test_timer_cancelled_in_time_never_fires)
{
	struct bench *b = bench_new();
	uint64_t base_ns = clock_now_ns() + 30 * NS_PER_MS;
	unsigned cancelled = 0;

	for (size_t i = 0; i < N; i++)
		timer_set(b->timers, &b->probes[i].timer, base_ns + i * 1000);
	for (size_t i = 0; i < N; i += 2)
		cancelled += timer_cancel(b->timers, &b->probes[i].timer);
	bench_wait(b, N - cancelled);
	ck_assert_uint_gt(cancelled, 0);
	ck_assert(!timer_cancel(b->timers, &b->probes[0].timer));
	timers_free(b->timers);
	b->timers = NULL;
	ck_assert_uint_eq(b->fired, N - cancelled);
	bench_free(b);
}
END_TEST

START_TEST(test_timer_that_is_set_again_moves)
{
	struct bench *b = bench_new();
	struct timer *first = &b->probes[0].timer;
	struct timer *second = &b->probes[1].timer;
	uint64_t now_ns = clock_now_ns();

	timer_set(b->timers, first, now_ns + NS_PER_S * 999);
	timer_set(b->timers, second, now_ns + NS_PER_MS * 5);
	timer_set(b->timers, first, now_ns + NS_PER_MS * 2);
	bench_wait(b, 2);
	ck_assert_uint_eq(b->probes[0].fired, 1);
	ck_assert_ptr_eq(b->order[0], &b->probes[0]);
	bench_free(b);
}
END_TEST

/* Returns the next number of a random sequence. */
static unsigned draw(unsigned below)
{
	static uint64_t x = 1;

	x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(x >> 33) % below;
}

START_TEST(test_timers_moved_and_cancelled_at_random_fire_in_order)
{
	struct bench *b = bench_new();
	uint64_t base_ns = clock_now_ns();
	bool set[N] = {false};
	unsigned n = 0;

	/* The first callback waits for the lock, so all other callbacks wait,
	 * too. */
	pthread_mutex_lock(&b->lock);
	timer_set(b->timers, &b->probes[0].timer, 0);
	for (unsigned round = 0; round < 50 * N; round++) {
		unsigned i = 1 + draw(N - 1);

		if (draw(3) == 0) {
			ck_assert_int_eq(
				timer_cancel(b->timers, &b->probes[i].timer),
				set[i]);
			set[i] = false;
		} else {
			timer_set(b->timers, &b->probes[i].timer,
				base_ns + draw(1000));
			set[i] = true;
		}
	}
	pthread_mutex_unlock(&b->lock);
	for (unsigned i = 0; i < N; i++)
		n += set[i];
	bench_wait(b, 1 + n);
	timers_free(b->timers);
	b->timers = NULL;
	ck_assert_uint_eq(b->fired, 1 + n);
	for (unsigned i = 1; i < N; i++)
		ck_assert_uint_eq(b->probes[i].fired, set[i]);
	for (unsigned i = 1; i < b->fired; i++)
		ck_assert_uint_ge(
			b->order[i]->timer.at_ns, b->order[i - 1]->timer.at_ns);
	bench_free(b);
}
END_TEST

START_TEST(test_timers_still_set_never_fire_after_free)
{
	struct bench *b = bench_new();

	timer_set(b->timers, &b->probes[0].timer,
		clock_now_ns() + NS_PER_S * 999);
	timers_free(b->timers);
	b->timers = NULL;
	ck_assert_uint_eq(b->fired, 0);
	bench_free(b);
}
END_TEST

static void *set_and_cancel(void *arg)
{
	struct bench *b = arg;
	static _Atomic unsigned turn;
	size_t first = atomic_fetch_add(&turn, 1) % 4;
	unsigned *cancelled = calloc(1, sizeof(*cancelled));

	for (size_t i = first; i < N; i += 4) {
		timer_set(b->timers, &b->probes[i].timer,
			clock_now_ns() + i % 3 * 100000);
		if (i % 2)
			*cancelled +=
				timer_cancel(b->timers, &b->probes[i].timer);
	}
	return cancelled;
}

START_TEST(test_timers_take_many_setters_and_fire_each_once)
{
	struct bench *b = bench_new();
	pthread_t threads[4];
	unsigned cancelled = 0;

	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, set_and_cancel, b),
			0);
	for (size_t i = 0; i < 4; i++) {
		void *n;

		pthread_join(threads[i], &n);
		cancelled += *(unsigned *)n;
		free(n);
	}
	bench_wait(b, N - cancelled);
	timers_free(b->timers);
	b->timers = NULL;
	ck_assert_uint_eq(b->fired, N - cancelled);
	bench_free(b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("timer");
	TCase *tc = case_of(suite, "timer");

	tcase_add_test(tc, test_timers_fire_in_order_of_time_and_never_early);
	tcase_add_test(tc, test_timer_cancelled_in_time_never_fires);
	tcase_add_test(tc, test_timer_that_is_set_again_moves);
	tcase_add_test(
		tc, test_timers_moved_and_cancelled_at_random_fire_in_order);
	tcase_add_test(tc, test_timers_still_set_never_fire_after_free);
	tcase_add_test(tc, test_timers_take_many_setters_and_fire_each_once);
	return run_suite(suite);
}
