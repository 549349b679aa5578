/* SPDX-License-Identifier: MIT */
/*
 * Publication: threads that write complete items to their tiers, off the
 * readers' path. Until it is in its tier an item is served from memory.
 */
#include "cache/fill.h"

#include <errno.h>

static struct fill *next_fill(struct cache *c)
{
	struct fill *f;

	while (list_empty(&c->publish) && !c->stopping)
		pthread_cond_wait(&c->publish_cond, &c->lock);
	if (list_empty(&c->publish))
		return NULL;
	f = CONTAINER_OF(c->publish.next, struct fill, publish);
	list_del(&f->publish);
	return f;
}

/* The outcome; readers find the item in its tier from here on. */
static void published(struct cache *c, struct fill *f, int rc, struct after *a)
{
	LIST_FOREACH(l, &f->warms)
		CONTAINER_OF(l, struct cache_warm, link)->status = rc;
	list_splice_tail(&a->warms, &f->warms);
	if (rc == 0) {
		COUNT(c->config.counters, admitted);
		f->prefetched = false;
		fill_leave_table(c, f);
	} else if (f->phase == FILL_PUBLISHING) {
		fill_stage(c, f);
	}
	if (--c->npublishing == 0)
		pthread_cond_broadcast(&c->idle_cond);
}

static void publish(struct cache *c, struct fill *f)
{
	struct hash128 key = f->key;
	uint64_t size = f->item.size;
	struct reservation res = f->res;
	bool ceased = f->ceased;
	struct after a;
	int rc = -ESTALE;

	/* The reservation is ours: leaving the table must not end it. */
	f->res = (struct reservation){0};
	pthread_mutex_unlock(&c->lock);

	if (ceased)
		store_unreserve(c->config.store, &res);
	else
		rc = store_publish(c->config.store, &res, key, f->buf, size);

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	published(c, f, rc, &a);
	ceased = f->ceased;
	fill_unref(c, f);
	cache_unlock(c, &a);
	/* Its version ceased meanwhile, perhaps after a look for its entry. */
	if (ceased && rc == 0)
		store_invalidate(c->config.store, key, size);
}

static void *publisher_main(void *arg)
{
	struct cache *c = arg;
	struct fill *f;

	pthread_mutex_lock(&c->lock);
	while ((f = next_fill(c))) {
		publish(c, f);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int publish_start(struct cache *c, struct error *err)
{
	while (c->npublishers < PUBLISHERS) {
		int rc = pthread_create(
			&c->publisher[c->npublishers], NULL, publisher_main, c);

		if (rc != 0)
			return error_set(err, -rc, "cannot start a thread: %m");
		c->npublishers++;
	}
	return 0;
}

void publish_stop(struct cache *c)
{
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_broadcast(&c->publish_cond);
	pthread_mutex_unlock(&c->lock);
	while (c->npublishers > 0)
		pthread_join(c->publisher[--c->npublishers], NULL);
}
