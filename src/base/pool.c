/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads: one lock, one queue. Any thread submits; jobs run on the
 * pool's threads with no lock held. The first job that a job submits is kept by
 * its thread, which is about to be free: a call that follows from another costs
 * no wake-up.
 */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"

struct pool {
	pthread_mutex_t lock; /* rank: a leaf */
	pthread_cond_t wake;  /* a job was queued, or `stop` */
	pthread_cond_t ended; /* `running` has fallen */
	struct list queue;    /* lock */
	unsigned queued;      /* lock: jobs in `queue` */
	unsigned idle;	      /* lock: threads that wait */
	unsigned running;     /* lock: threads that have not ended */
	unsigned n, max;      /* lock; max set once */
	bool stop;	      /* lock */
	pthread_key_t self;   /* set once: of struct worker */
	pthread_t threads[];  /* lock: the first n were started */
};

/* A thread of the pool; only it looks at it. */
struct worker {
	struct pool_job *next; /* submitted by the one that runs, or NULL */
};

static void run_jobs(struct worker *w, struct pool_job *job)
{
	while (job) {
		job->run(job);
		job = steal_ptr(&w->next);
	}
}

static void *pool_thread(void *arg)
{
	struct pool *p = arg;
	struct worker w = {.next = NULL};

	/* Without memory for it, all jobs go through the queue. */
	(void)pthread_setspecific(p->self, &w);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pool_job *job;

		while (list_empty(&p->queue) && !p->stop) {
			p->idle++;
			pthread_cond_wait(&p->wake, &p->lock);
			p->idle--;
		}
		if (list_empty(&p->queue))
			break;
		job = CONTAINER_OF(p->queue.next, struct pool_job, node);
		list_del(&job->node);
		p->queued--;
		pthread_mutex_unlock(&p->lock);
		run_jobs(&w, job);
		pthread_mutex_lock(&p->lock);
	}
	p->running--;
	pthread_cond_signal(&p->ended);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Lock held. */
static int start_thread(struct pool *p)
{
	int rc = pthread_create(&p->threads[p->n], NULL, pool_thread, p);

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
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	cond_init(&p->ended);
	pthread_mutex_lock(&p->lock);
	rc = start_thread(p);
	pthread_mutex_unlock(&p->lock);
	if (rc) {
		(void)pool_free(p, 0); /* has no thread to wait for */
		return rc;
	}
	*out = p;
	return 0;
}

void pool_submit(struct pool *p, struct pool_job *job)
{
	struct worker *w = pthread_getspecific(p->self);

	if (w && !w->next) {
		w->next = job;
		return;
	}
	LOCK_SCOPE(&p->lock);
	list_add_tail(&p->queue, &job->node);
	p->queued++;
	if (p->queued > p->idle && p->n < p->max)
		(void)start_thread(p); /* the others get there, later */
	pthread_cond_signal(&p->wake);
}

/* True when all threads have ended. */
static bool stop_threads(struct pool *p, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	LOCK_SCOPE(&p->lock);

	p->stop = true;
	pthread_cond_broadcast(&p->wake);
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
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	(void)pthread_key_delete(p->self); /* its threads have gone */
	free(p);
	return true;
}
