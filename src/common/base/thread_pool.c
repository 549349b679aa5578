/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads: one lock, one queue. Any thread submits; jobs run on the
 * pool's threads with no lock held. A thread keeps the first job that its own
 * job submits, as it is about to be free: this saves a wake-up when one call
 * follows another.
 */
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

struct pool {
	pthread_mutex_t lock; /* rank: a leaf */
	pthread_cond_t ended; /* `running` has fallen */
	struct list queue;    /* lock: of struct pool_job */
	struct list idle;    /* lock: of struct pool_worker, the latest first */
	unsigned running;    /* lock: threads that have not ended */
	unsigned n, max;     /* lock; max set once */
	bool stop;	     /* lock */
	pthread_key_t self;  /* set once: of struct pool_worker */
	pthread_t threads[]; /* lock: the first n were started */
};

/*
 * A thread of the pool. An idle thread is handed its job and woken after the
 * lock has been released. So it need not take the lock, and the waker need not
 * touch the pool again, which may be gone by then.
 */
struct pool_worker {
	struct list node; /* lock: in `idle` */
	sem_t wake;
	/* While idle: set by the thread that takes it from `idle`, before
	 * `wake`. Else its own. */
	struct pool_job *next;
};

static void run_jobs(struct pool_worker *w, struct pool_job *job)
{
	while (job) {
		job->run(job);
		job = steal_ptr(&w->next);
	}
}

/* Called with the lock held, which it releases while waiting. NULL: the pool
 * may have stopped. */
static struct pool_job *wait_for_job(struct pool *p, struct pool_worker *w)
{
	ASSERT_HELD(&p->lock);
	list_add_tail(list_next(&p->idle), &w->node); /* becomes the first */
	pthread_mutex_unlock(&p->lock);
	while (sem_wait(&w->wake) < 0 && errno == EINTR)
		;
	return steal_ptr(&w->next);
}

static void pool_serve(struct pool *p, struct pool_worker *w)
{
	pthread_mutex_lock(&p->lock);
	while (!list_empty(&p->queue) || !p->stop) {
		struct pool_job *job;

		if (list_empty(&p->queue)) {
			job = wait_for_job(p, w);
		} else {
			job = LIST_FIRST(&p->queue, struct pool_job, node);
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

/*
 * Jobs here are not urgent to a reader. A woken thread should not preempt the
 * running thread, which may hold a lock (a hint).
 */
static void *pool_thread(void *arg)
{
	struct pool *p = arg;
	struct pool_worker w = {.next = NULL};

	(void)sem_init(&w.wake, 0, 0); /* cannot fail for 0 */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	/* On failure all jobs go through the queue. */
	(void)pthread_setspecific(p->self, &w);
	pool_serve(p, &w);
	(void)sem_destroy(&w.wake); /* nobody waits */
	return NULL;
}

static int pool_start_thread(struct pool *p)
{
	int rc = pthread_create(&p->threads[p->n], NULL, pool_thread, p);

	ASSERT_HELD(&p->lock);
	if (rc)
		return -rc;
	p->n++;
	p->running++;
	return 0;
}

int pool_new(struct pool **out, unsigned max_threads)
{
	struct pool *p =
		calloc(1, sizeof(*p) + max_threads * sizeof(p->threads[0]));
	int rc;

	if (!p)
		return -ENOMEM;
	rc = -pthread_key_create(&p->self, NULL);
	if (rc) {
		free(p);
		return rc;
	}
	p->max = max_threads;
	list_init(&p->queue);
	list_init(&p->idle);
	lock_init(&p->lock, RANK_POOL);
	cond_init(&p->ended);
	pthread_mutex_lock(&p->lock);
	rc = pool_start_thread(p);
	pthread_mutex_unlock(&p->lock);
	if (rc) {
		(void)pool_free(p, 0); /* there is no thread to wait for */
		return rc;
	}
	*out = p;
	return 0;
}

/* Give the job to an idle thread; NULL: none is idle, and the job is queued. */
static struct pool_worker *give(struct pool *p, struct pool_job *job)
{
	struct pool_worker *w;
	LOCK_SCOPE(&p->lock);

	if (list_empty(&p->idle)) {
		list_add_tail(&p->queue, &job->node);
		if (p->n < p->max)
			(void)pool_start_thread(
				p); /* else the other threads run it later */
		return NULL;
	}
	w = LIST_FIRST(&p->idle, struct pool_worker, node);
	list_del(&w->node);
	w->next = job;
	return w;
}

void pool_submit(struct pool *p, struct pool_job *job)
{
	struct pool_worker *w = pthread_getspecific(p->self);

	if (w && !w->next) {
		w->next = job;
		return;
	}
	w = give(p, job);
	if (w)
		(void)sem_post(&w->wake); /* one post a wait: no overflow */
}

uint64_t pool_cpu_ns(struct pool *p)
{
	uint64_t ns = 0;
	LOCK_SCOPE(&p->lock);

	for (unsigned i = 0; i < p->n; i++)
		ns += clock_cpu_of_ns(p->threads[i]);
	return ns;
}

/* True when all threads have ended. */
static bool stop_threads(struct pool *p, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	LOCK_SCOPE(&p->lock);

	p->stop = true;
	while (!list_empty(&p->idle)) {
		struct pool_worker *w =
			LIST_FIRST(&p->idle, struct pool_worker, node);

		list_del(&w->node);
		(void)sem_post(&w->wake); /* as above */
	}
	while (p->running > 0)
		if (!cond_wait_until(&p->ended, &p->lock, until_ns))
			break;
	return p->running == 0;
}

bool pool_free(struct pool *p, uint64_t wait_ns)
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
	(void)pthread_key_delete(p->self); /* its threads have gone */
	free(p);
	return true;
}
