/* SPDX-License-Identifier: MIT */
/* Late answers: a list of requests, linked by their priv under a lock, and a
 * thread that answers them. */
#include "origin/local/late_answers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

struct late {
	struct thread_pool *pool; /* set once */
	struct thread_job job;	  /* the pool owns the job while `queued` */
	pthread_mutex_t lock;	  /* taken before the lock of the pool */
	bool queued; /* guarded by lock: `job` was submitted and has not run */
	struct origin_request *first; /* guarded by lock */
};

static void answer_all(struct thread_job *job)
{
	struct late *l = CONTAINER_OF(job, struct late, job);
	struct origin_request *q;

	pthread_mutex_lock(&l->lock);
	l->queued = false;
	while ((q = l->first)) {
		/* Remove the request first, so that an abandon does not find it
		 * any more. */
		l->first = steal_ptr(&q->priv);
		pthread_mutex_unlock(&l->lock);
		origin_answer(q, -ENOMEM);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

int late_new(struct late **out)
{
	struct late *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	rc = thread_pool_new(&l->pool, 1);
	if (rc) {
		free(l);
		return rc;
	}
	thread_job_init(&l->job, answer_all);
	lock_init(&l->lock, RANK_LATE);
	*out = l;
	return 0;
}

void late_answer(struct late *l, struct origin_request *q)
{
	LOCK_SCOPE(&l->lock);

	q->priv = l->first;
	l->first = q;
	if (!l->queued)
		thread_pool_submit(l->pool, &l->job);
	l->queued = true;
}

bool late_has(struct late *l, const struct origin_request *q)
{
	LOCK_SCOPE(&l->lock);

	for (const struct origin_request *at = l->first; at; at = at->priv)
		if (at == q)
			return true;
	return false;
}

void late_run(struct late *l, struct thread_job *job)
{
	thread_pool_submit(l->pool, job);
}

void late_free(struct late *l)
{
	if (!l || !thread_pool_free(l->pool, UINT64_MAX / 4))
		return;
	pthread_mutex_destroy(&l->lock);
	free(l);
}
