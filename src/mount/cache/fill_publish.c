/* SPDX-License-Identifier: MIT */
/* Publishes complete items. Threads of this file write items to their tiers, so
 * that no reader waits for a write. An item is served from memory until a tier
 * has it. */
#include "mount/cache/cache_impl.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/trace.h"
#include "mount/cache/fill_part_impl.h"

#define PUBLISHERS 2u
#define PART_THREADS 2u

void publish_ended(struct cache *c)
{
	ASSERT_INSIDE(c);
	if (--cache_moves(c)->npublishing == 0)
		jobs_wake(c);
}

static void publish(struct thread_job *job)
{
	struct fill_move *m = CONTAINER_OF(job, struct fill_move, job);
	struct cache *c = m->cache;
	struct fill *f = m->fill;
	struct provider_item item;
	bool ceased;
	struct reservation res = fill_take_reservation(c, f, &ceased);
	struct after a;
	int rc = -ESTALE;

	fill_describe(f, &item);
	if (ceased)
		store_unreserve(cache_config(c)->store, &res);
	else
		rc = store_publish(cache_config(c)->store, &res, item.key,
			f->buf, item.size);
	TRACE(publication, f->item.cookie, f->item.base, item.size, (int64_t)rc,
		f->path);
	if (rc == 0)
		part_discard(c, &f->item, f->key);
	jobs_enter(c, &a);
	/* Readers find the item in its tier from now on. */
	ceased = fill_published(c, f, rc, &a);
	publish_ended(c);
	fill_unref(c, f);
	jobs_run(c, &a);
	/* The version ceased during the publication. The code that deletes the
	 * entries of such versions may have run before this entry existed, so
	 * delete it here. */
	if (ceased && rc == 0)
		store_invalidate(cache_config(c)->store, item.key, item.size);
}

struct fill *publish_run(struct cache *c, struct list *link, struct after *a)
{
	struct fill_move *m = CONTAINER_OF(link, struct fill_move, link);

	/* All readers of the item have been answered, so the time of this
	 * thread costs none of them anything. */
	if (a->writes_now && m->in_memory) {
		publish(&m->job);
		return NULL;
	}
	thread_job_init(&m->job, publish);
	thread_pool_submit(cache_moves(c)->publishers, &m->job);
	return NULL; /* the publisher drops the reference */
}

int publish_start(struct cache *c, struct error *err)
{
	int rc = thread_pool_new(&cache_moves(c)->publishers, PUBLISHERS);

	if (rc == 0)
		rc = thread_pool_new(
			&cache_moves(c)->part_threads, PART_THREADS);
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

void publish_wait(struct cache *c)
{
	ASSERT_INSIDE(c);
	while (cache_moves(c)->npublishing > 0)
		jobs_wait(c);
}

void cache_settle(struct cache *c, uint64_t timeout_ns)
{
	uint64_t until = clock_now_ns() + timeout_ns;

	jobs_lock(c);
	while (cache_moves(c)->npublishing > 0 && jobs_wait_until(c, until))
		;
	jobs_unlock(c);
}

/* Wait for all publications, and end the threads. */
void publish_stop(struct cache *c)
{
	jobs_lock(c);
	publish_wait(c);
	jobs_unlock(c);
	(void)thread_pool_free(
		steal_ptr(&cache_moves(c)->publishers), UINT64_MAX / 4);
	(void)thread_pool_free(
		steal_ptr(&cache_moves(c)->part_threads), UINT64_MAX / 4);
}
