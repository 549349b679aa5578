/* SPDX-License-Identifier: MIT */
/* Tests of the pool of threads: which thread runs a job, and that all jobs run.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/thread_pool.h"
#include "suite.h"

#define THREADS 4
#define FOLLOWERS 3

struct task {
	struct thread_job job;
	struct crew *crew;
	pthread_t thread; /* the thread that ran the job; set by run() */
};

struct crew {
	struct thread_pool *pool;
	struct task first, followers[FOLLOWERS];
	atomic_uint ran;
};

static void run_follower(struct thread_job *job)
{
	struct task *t = CONTAINER_OF(job, struct task, job);

	t->thread = pthread_self();
	atomic_fetch_add(&t->crew->ran, 1);
}

static void run_first(struct thread_job *job)
{
	struct task *t = CONTAINER_OF(job, struct task, job);
	struct crew *c = t->crew;

	t->thread = pthread_self();
	for (int i = 0; i < FOLLOWERS; i++) {
		c->followers[i].crew = c;
		thread_job_init(&c->followers[i].job, run_follower);
		thread_pool_submit(c->pool, &c->followers[i].job);
	}
}

START_TEST(test_a_pool_runs_the_first_job_of_a_job_on_its_thread)
{
	struct crew c = {.first = {.crew = &c}};

	thread_job_init(&c.first.job, run_first);
	ck_assert_int_eq(thread_pool_new(&c.pool, THREADS), 0);
	thread_pool_submit(c.pool, &c.first.job);
	ck_assert(thread_pool_free(c.pool, 10 * NS_PER_S));
	ck_assert_uint_eq(atomic_load(&c.ran), FOLLOWERS);
	ck_assert(pthread_equal(c.first.thread, c.followers[0].thread));
}
END_TEST

/* Two jobs wait for each other. They end only if both run at the same time. */
struct pair {
	struct thread_pool *pool;
	struct thread_job first, kept, other;
	pthread_barrier_t both;
	atomic_uint ran;
};

static void run_kept(struct thread_job *job)
{
	struct pair *p = CONTAINER_OF(job, struct pair, kept);

	(void)pthread_barrier_wait(&p->both);
	atomic_fetch_add(&p->ran, 1);
}

static void run_other(struct thread_job *job)
{
	struct pair *p = CONTAINER_OF(job, struct pair, other);

	(void)pthread_barrier_wait(&p->both);
	atomic_fetch_add(&p->ran, 1);
}

static void run_pair(struct thread_job *job)
{
	struct pair *p = CONTAINER_OF(job, struct pair, first);

	thread_pool_submit(p->pool, &p->kept);
	thread_pool_submit(p->pool, &p->other);
}

START_TEST(test_a_pool_keeps_no_more_than_one_job_for_a_thread)
{
	struct pair p = {.pool = NULL};

	thread_job_init(&p.first, run_pair);
	thread_job_init(&p.kept, run_kept);
	thread_job_init(&p.other, run_other);
	ck_assert_int_eq(pthread_barrier_init(&p.both, NULL, 2), 0);
	ck_assert_int_eq(thread_pool_new(&p.pool, THREADS), 0);
	thread_pool_submit(p.pool, &p.first);
	ck_assert(thread_pool_free(p.pool, 10 * NS_PER_S));
	ck_assert_uint_eq(atomic_load(&p.ran), 2);
	pthread_barrier_destroy(&p.both);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pool");
	TCase *t = case_of(s, "pool");

	tcase_add_test(
		t, test_a_pool_runs_the_first_job_of_a_job_on_its_thread);
	tcase_add_test(t, test_a_pool_keeps_no_more_than_one_job_for_a_thread);
	return run_suite(s);
}
