/* SPDX-License-Identifier: MIT */
/*
 * The engine of the cache. Whoever changed something under the lock leaves
 * through engine_run(): it starts the requests that can be started now, and
 * runs what must not run under the lock: callbacks, hand-overs to publishers
 * and to sources. Each of these may make room for more. Any thread.
 */
#include "cache/fill_impl.h"

#include "base/cleanup.h"
#include "base/lock.h"

void after_init(struct after *a)
{
	list_init(&a->reads);
	list_init(&a->warms);
	list_init(&a->starts);
	list_init(&a->fills);
	list_init(&a->pushes);
	a->stale = NULL;
}

/* Answer one read; back with the lock held. r is gone after done(). */
static void run_read(struct cache *c, struct cache_read *r)
{
	struct fill *f = r->fill;

	ASSERT_HELD(&c->lock);
	list_del(&r->link);
	pthread_mutex_unlock(&c->lock);
	if (r->status > 0)
		COUNT_ADD(c->config.counters, miss_bytes, r->len);
	r->done(r, r->status, r->status > 0 ? f->buf + r->off : NULL);
	pthread_mutex_lock(&c->lock);
	fill_unref(c, f);
}

static void run_warm(struct cache *c, struct cache_warm *w)
{
	ASSERT_HELD(&c->lock);
	list_del(&w->link);
	pthread_mutex_unlock(&c->lock);
	w->done(w, w->status);
	pthread_mutex_lock(&c->lock);
}

static void run_stale(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	pthread_mutex_unlock(&c->lock);
	c->config.stale(c->config.arg, f->item.cookie);
	pthread_mutex_lock(&c->lock);
	fill_unref(c, f);
}

static void run_publish(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	list_del(&f->publish);
	pthread_mutex_unlock(&c->lock);
	publish_submit(c, f);
	pthread_mutex_lock(&c->lock);
}

/* Requests to the origin first, for they take the longest. */
void engine_run(struct cache *c, struct after *a)
{
	ASSERT_HELD(&c->lock);
	for (;;) {
		/* Each answer may give memory back, for others to start. */
		dispatch_all(c, a);
		if (!list_empty(&a->starts))
			dispatch_run(c,
				CONTAINER_OF(
					a->starts.next, struct fetch, start));
		else if (!list_empty(&a->reads))
			run_read(c,
				CONTAINER_OF(a->reads.next, struct cache_read,
					link));
		else if (!list_empty(&a->warms))
			run_warm(c,
				CONTAINER_OF(a->warms.next, struct cache_warm,
					link));
		else if (a->stale)
			run_stale(c, steal_ptr(&a->stale));
		else if (!list_empty(&a->pushes))
			push_run(c,
				CONTAINER_OF(
					a->pushes.next, struct push, link));
		else if (!list_empty(&a->fills))
			run_publish(c,
				CONTAINER_OF(
					a->fills.next, struct fill, publish));
		else if (!list_empty(&c->planned_done))
			planned_run(c);
		else
			break;
	}
	pthread_mutex_unlock(&c->lock);
}
