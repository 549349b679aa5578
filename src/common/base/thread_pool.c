/* SPDX-License-Identifier: MIT */
/* A pool of threads: one lock, one queue. Any thread submits jobs; they run on
 * the pool's threads with no lock held. If a job submits another job, the other
 * job runs next on the same thread, because that thread is about to be free.
 * This saves a wake-up when one call follows another. */
#include "common/base/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

struct thread_pool {
	uint32_t magic;
	pthread_mutex_t lock; /* no other lock is taken while it is held */
	pthread_cond_t ended; /* signalled when `running` was decremented */
	struct list queue;    /* guarded by lock: list of struct thread_job */
	/* guarded by lock: idle workers, the most recent one first */
	struct list idle;
	unsigned running; /* guarded by lock: threads that have not ended */
	unsigned n, max;  /* n: guarded by lock; max: set once */
	bool stop;	  /* guarded by lock */
	/* set once; each thread's value is its struct thread_pool_worker */
	pthread_key_t self;
	pthread_t threads[]; /* guarded by lock: the first n are set */
};

/* A thread of the pool. Another thread gives an idle one its job, releases the
 * lock, and then wakes it. So the idle thread need not take the lock. After the
 * wake-up the other thread does not use the pool, because the pool may be freed
 * by then. */
struct thread_pool_worker {
	struct list node; /* guarded by lock: in `idle` */
	sem_t wake;
	/*
	 * While the thread is idle, the thread that takes it from `idle` sets
	 * this, before `wake`. At other times only the thread itself uses it.
	 */
	struct thread_job *next;
};

static void run_jobs(struct thread_pool_worker *w, struct thread_job *job)
{
	while (job) {
		OBJECT(thread_job, job)->run(job);
		job = steal_ptr(&w->next);
	}
}

/* Wait until another thread gives this one a job. The caller holds the lock,
 * and this releases it. Returns NULL if there may be work, or if the pool has
 * stopped. */
static struct thread_job *wait_for_job(
	struct thread_pool *p, struct thread_pool_worker *w)
{
	ASSERT_HELD(&p->lock);
	/* the thread becomes the first idle one */
	list_add_tail(list_next(&p->idle), &w->node);
	pthread_mutex_unlock(&p->lock);
	while (sem_wait(&w->wake) < 0 && errno == EINTR)
		;
	return steal_ptr(&w->next);
}

static void thread_pool_serve(
	struct thread_pool *p, struct thread_pool_worker *w)
{
	pthread_mutex_lock(&p->lock);
	while (!list_empty(&p->queue) || !p->stop) {
		struct thread_job *job;

		if (list_empty(&p->queue)) {
			job = wait_for_job(p, w);
		} else {
			job = LIST_FIRST(&p->queue, struct thread_job, node);
			list_del(&job->node);
			pthread_mutex_unlock(&p->lock);
		}
		run_jobs(w, job);
		pthread_mutex_lock(&p->lock);
	}
	p->running--;
	pthread_cond_signal(&p->ended);
	pthread_mutex_unlock(&p->lock);
}

/* The main function of a thread. With SCHED_BATCH, a woken thread does not
 * preempt the thread that has woken it, which may hold a lock. The delay hardly
 * matters, because other threads hardly ever wait for these jobs. The policy is
 * only a hint, so a failure is ignored. */
static void *thread_pool_main(void *arg)
{
	struct thread_pool *p = OBJECT(thread_pool, arg);
	struct thread_pool_worker w = {.next = NULL};

	(void)sem_init(&w.wake, 0, 0); /* cannot fail for the value 0 */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	/* If this fails, all jobs of this thread go through the queue. */
	(void)pthread_setspecific(p->self, &w);
	thread_pool_serve(p, &w);
	(void)sem_destroy(&w.wake); /* cannot fail: no thread waits for it */
	return NULL;
}

static int thread_pool_start(struct thread_pool *p)
{
	int rc = pthread_create(&p->threads[p->n], NULL, thread_pool_main, p);

	ASSERT_HELD(&p->lock);
	if (rc)
		return -rc;
	p->n++;
	p->running++;
	return 0;
}

int thread_pool_new(struct thread_pool **out, unsigned max_threads)
{
	struct thread_pool *p =
		calloc(1, sizeof(*p) + max_threads * sizeof(p->threads[0]));
	int rc;

	if (!p)
		return -ENOMEM;
	rc = -pthread_key_create(&p->self, NULL);
	if (rc) {
		free(p);
		return rc;
	}
	MAGIC_BEGIN(p, thread_pool);
	p->max = max_threads;
	list_init(&p->queue);
	list_init(&p->idle);
	lock_init(&p->lock, RANK_THREAD_POOL);
	cond_init(&p->ended);
	pthread_mutex_lock(&p->lock);
	rc = thread_pool_start(p);
	pthread_mutex_unlock(&p->lock);
	if (rc) {
		(void)thread_pool_free(
			p, 0); /* there is no thread to wait for */
		return rc;
	}
	*out = p;
	return 0;
}

/* Give the job to an idle thread, and return that thread. If no thread is idle,
 * queue the job and return NULL. */
static struct thread_pool_worker *give(
	struct thread_pool *p, struct thread_job *job)
{
	struct thread_pool_worker *w;
	LOCK_SCOPE(&p->lock);

	if (list_empty(&p->idle)) {
		list_add_tail(&p->queue, &job->node);
		if (p->n < p->max)
			(void)thread_pool_start(
				p); /* on failure the running threads take the
				       job later */
		return NULL;
	}
	w = LIST_FIRST(&p->idle, struct thread_pool_worker, node);
	list_del(&w->node);
	w->next = job;
	return w;
}

void thread_pool_submit(struct thread_pool *p, struct thread_job *job)
{
	struct thread_pool_worker *w = pthread_getspecific(p->self);

	if (w && !w->next) {
		w->next = job;
		return;
	}
	w = give(p, job);
	if (w)
		/* one post for each wait, so it cannot overflow */
		(void)sem_post(&w->wake);
}

uint64_t thread_pool_cpu_ns(struct thread_pool *p)
{
	uint64_t ns = 0;
	LOCK_SCOPE(&p->lock);

	for (unsigned i = 0; i < p->n; i++)
		ns += clock_cpu_of_ns(p->threads[i]);
	return ns;
}

/* Stop the threads, and wait up to wait_ns for their end. Returns true when all
 * have ended. */
static bool stop_threads(struct thread_pool *p, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	LOCK_SCOPE(&p->lock);

	p->stop = true;
	while (!list_empty(&p->idle)) {
		struct thread_pool_worker *w =
			LIST_FIRST(&p->idle, struct thread_pool_worker, node);

		list_del(&w->node);
		/* cannot overflow: one post for each wait */
		(void)sem_post(&w->wake);
	}
	while (p->running > 0)
		if (!cond_wait_until(&p->ended, &p->lock, until_ns))
			break;
	return p->running == 0;
}

bool thread_pool_free(struct thread_pool *p, uint64_t wait_ns)
{
	if (!p)
		return true;
	if (!stop_threads(p, wait_ns)) {
		for (unsigned i = 0; i < p->n; i++)
			pthread_detach(p->threads[i]);
		return false;
	}
	for (unsigned i = 0; i < p->n; i++)
		pthread_join(p->threads[i], NULL);
	pthread_cond_destroy(&p->ended);
	pthread_mutex_destroy(&p->lock);
	/* cannot fail: all threads have ended */
	(void)pthread_key_delete(p->self);
	MAGIC_END(p);
	free(p);
	return true;
}
