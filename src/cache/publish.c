/* SPDX-License-Identifier: MIT */
/*
 * Publication: threads that write complete items to their tiers, off the
 * readers' path. Until it is in its tier an item is served from memory.
 */
#include "cache/fill_impl.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/lock.h"
#include "cache/part_impl.h"

void publish_ended(struct cache *c)
{
	ASSERT_HELD(&c->lock);
	if (--c->npublishing == 0)
		pthread_cond_broadcast(&c->idle_cond);
}

/* The outcome; readers find the item in its tier from here on. */
static void published(struct cache *c, struct fill *f, int rc, struct after *a)
{
	ASSERT_HELD(&c->lock);
	/* Warming does not report on an entry that cannot be read. */
	LIST_FOREACH(l, &f->warms)
		CONTAINER_OF(l, struct cache_warm, link)->status =
			rc == -EEXIST ? 0 : rc;
	list_splice_tail(&a->warms, &f->warms);
	if (rc == 0) {
		COUNT(c->config.counters, admitted);
		/* A hit will be their first reader. */
		COUNT_ADD(c->config.counters, admitted_unread_bytes,
			fill_bytes_without(f, PAGE_SERVED));
		planned_unread(f);
		planned_end(c, f, 0);
		fill_leave_table(c, f);
	} else if (f->phase == FILL_PUBLISHING) {
		/* Nor is an entry that was there one to rely on. */
		fill_stage(c, f);
	}
	publish_ended(c);
}

/* The reservation is ours: leaving the table must not end it. */
struct reservation publish_take_reservation(
	struct cache *c, struct fill *f, bool *ceased)
{
	struct reservation res;
	LOCK_SCOPE(&c->lock);

	res = f->res;
	f->res = (struct reservation){0};
	*ceased = f->ceased;
	return res;
}

static void publish(struct pool_job *job)
{
	struct fill *f = CONTAINER_OF(job, struct fill, publish_job);
	struct cache *c = f->cache;
	struct hash128 key = f->key;
	uint64_t size = f->item.size;
	bool ceased;
	struct reservation res = publish_take_reservation(c, f, &ceased);
	struct after a;
	int rc = -ESTALE;

	if (ceased)
		store_unreserve(c->config.store, &res);
	else
		rc = store_publish(c->config.store, &res, key, f->buf, size);

	if (rc == 0)
		part_discard(c, &f->item, key);
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	ceased = f->ceased;
	published(c, f, rc, &a);
	fill_unref(c, f);
	engine_run(c, &a);
	/* Its version ceased meanwhile, perhaps after a look for its entry. */
	if (ceased && rc == 0)
		store_invalidate(c->config.store, key, size);
}

void publish_submit(struct cache *c, struct fill *f)
{
	f->publish_job.run = publish;
	pool_submit(c->publishers, &f->publish_job);
}

int publish_start(struct cache *c, struct error *err)
{
	int rc = pool_new(&c->publishers, PUBLISHERS);

	if (rc == 0)
		rc = pool_new(&c->loaders, LOADERS);
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

void publish_wait(struct cache *c)
{
	ASSERT_HELD(&c->lock);
	while (c->npublishing > 0)
		pthread_cond_wait(&c->idle_cond, &c->lock);
}

/* Complete fills are still published. */
void publish_stop(struct cache *c)
{
	pthread_mutex_lock(&c->lock);
	publish_wait(c);
	pthread_mutex_unlock(&c->lock);
	(void)pool_free(steal_ptr(&c->publishers), UINT64_MAX / 4);
	(void)pool_free(steal_ptr(&c->loaders), UINT64_MAX / 4);
}
