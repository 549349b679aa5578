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
	if (--c->moves.npublishing == 0)
		pthread_cond_broadcast(&c->idle_cond);
}

static void publish(struct pool_job *job)
{
	struct fill_move *m = CONTAINER_OF(job, struct fill_move, job);
	struct cache *c = m->cache;
	struct fill *f = m->fill;
	struct source_item item;
	bool ceased;
	struct reservation res = fill_take_reservation(c, f, &ceased);
	struct after a;
	int rc = -ESTALE;

	fill_describe(f, &item);
	if (ceased)
		store_unreserve(c->config.store, &res);
	else
		rc = store_publish(c->config.store, &res, item.key,
			fill_data(f), item.size);
	if (rc == 0)
		part_of_whole(c, f);
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	/* Readers find the item in its tier from here on. */
	ceased = fill_published(c, f, rc, &a);
	publish_ended(c);
	fill_unref(c, f);
	engine_run(c, &a);
	/* Its version ceased meanwhile, perhaps after a look for its entry. */
	if (ceased && rc == 0)
		store_invalidate(c->config.store, item.key, item.size);
}

void publish_run(struct cache *c, struct list *link)
{
	struct fill_move *m = CONTAINER_OF(link, struct fill_move, link);

	ASSERT_HELD(&c->lock);
	list_del(link);
	pthread_mutex_unlock(&c->lock);
	m->job.run = publish;
	pool_submit(c->moves.publishers, &m->job);
	pthread_mutex_lock(&c->lock);
}

int publish_start(struct cache *c, struct error *err)
{
	int rc = pool_new(&c->moves.publishers, PUBLISHERS);

	if (rc == 0)
		rc = pool_new(&c->moves.loaders, LOADERS);
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

void publish_wait(struct cache *c)
{
	ASSERT_HELD(&c->lock);
	while (c->moves.npublishing > 0)
		pthread_cond_wait(&c->idle_cond, &c->lock);
}

/* Complete fills are still published. */
void publish_stop(struct cache *c)
{
	pthread_mutex_lock(&c->lock);
	publish_wait(c);
	pthread_mutex_unlock(&c->lock);
	(void)pool_free(steal_ptr(&c->moves.publishers), UINT64_MAX / 4);
	(void)pool_free(steal_ptr(&c->moves.loaders), UINT64_MAX / 4);
}
