/* SPDX-License-Identifier: MIT */
/*
 * Late answers: three lists through the requests' priv, under one lock, and a
 * thread that empties them.
 */
#include "origin/late.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct late {
	struct pool *pool;	   /* set once */
	struct pool_job job;	   /* queued: owned by the pool */
	pthread_mutex_t lock;	   /* rank: above the pool's */
	bool queued;		   /* lock: `job` is on its way */
	struct origin_read *reads; /* lock, as the next two */
	struct origin_stat *stats;
	struct origin_list *lists;
};

static void answer_all(struct pool_job *job)
{
	struct late *l = CONTAINER_OF(job, struct late, job);
	struct origin_read *r;
	struct origin_stat *s;
	struct origin_list *x;

	pthread_mutex_lock(&l->lock);
	l->queued = false;
	while ((r = l->reads) || (s = l->stats) || (x = l->lists)) {
		/* An abandon that comes now is to find nothing. */
		if (r)
			l->reads = steal_ptr(&r->priv);
		else if (s)
			l->stats = s->priv;
		else
			l->lists = x->priv;
		pthread_mutex_unlock(&l->lock);
		if (r)
			r->done(r, -ENOMEM, NULL);
		else if (s)
			s->done(s, -ENOMEM, NULL, NULL);
		else
			x->done(x, -ENOMEM);
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
	rc = pool_new(&l->pool, 1);
	if (rc) {
		free(l);
		return rc;
	}
	l->job.run = answer_all;
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

/* Lock held. */
static void kick(struct late *l)
{
	if (!l->queued)
		pool_submit(l->pool, &l->job);
	l->queued = true;
}

void late_read(struct late *l, struct origin_read *r)
{
	LOCK_SCOPE(&l->lock);

	r->priv = l->reads;
	l->reads = r;
	kick(l);
}

void late_stat(struct late *l, struct origin_stat *s)
{
	LOCK_SCOPE(&l->lock);

	s->priv = l->stats;
	l->stats = s;
	kick(l);
}

void late_list(struct late *l, struct origin_list *x)
{
	LOCK_SCOPE(&l->lock);

	x->priv = l->lists;
	l->lists = x;
	kick(l);
}

bool late_has_read(struct late *l, const struct origin_read *r)
{
	LOCK_SCOPE(&l->lock);

	for (const struct origin_read *at = l->reads; at; at = at->priv)
		if (at == r)
			return true;
	return false;
}

void late_run(struct late *l, struct pool_job *job)
{
	pool_submit(l->pool, job);
}

void late_free(struct late *l)
{
	if (!l || !pool_free(l->pool, UINT64_MAX / 4))
		return;
	pthread_mutex_destroy(&l->lock);
	free(l);
}
