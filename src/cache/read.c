/* SPDX-License-Identifier: MIT */
/*
 * The cache's front: reads, warming, invalidation. Entered by handlers, by
 * the loader of plans and by commands. One lock guards fills; a hit in a tier
 * never takes it. Lock order: cache.lock, then those inside the store, the
 * origin, the timers and the manifest (path()).
 */
#include "cache/fill_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/key.h"
#include "base/lock.h"
#include "cache/part_impl.h"

/* Between a look and the read an entry can come and go; not for ever. */
#define READ_TRIES 3

struct cache_scratch {
	struct store_scratch *store;
};

struct cache_scratch *cache_scratch_new(void)
{
	struct cache_scratch *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->store = store_scratch_new();
	if (!s->store) {
		free(s);
		return NULL;
	}
	return s;
}

void cache_scratch_free(struct cache_scratch *s)
{
	if (!s)
		return;
	store_scratch_free(s->store);
	free(s);
}

/* -- Items --------------------------------------------------------------- */

void cache_item_at(const struct cache *c, uint64_t off, struct cache_item *item)
{
	uint64_t size = item->version.size_bytes;
	uint64_t chunk = c->config.chunk_bytes;

	item->base = 0;
	item->size = size;
	if (size <= c->config.limit_bytes)
		return;
	item->base = off - off % chunk;
	item->size = size - item->base < chunk ? size - item->base : chunk;
}

struct hash128 cache_key(const struct cache *c, const struct cache_item *item)
{
	return key_item_of(c->config.dataset, item->digest, item->version,
		item->base, item->size);
}

bool cache_resident(struct cache *c, const struct cache_item *item)
{
	return store_has(c->config.store, cache_key(c, item), item->size);
}

void cache_keep(struct cache *c, const struct cache_item *item)
{
	struct hash128 key = cache_key(c, item);

	store_keep(c->config.store, key);
	part_keep(c, item, key);
}

/* -- Reads --------------------------------------------------------------- */

static ssize_t read_hit(struct cache *c, struct cache_scratch *s,
	const struct cache_item *item, struct hash128 key, struct cache_read *r)
{
	ssize_t n = store_read(c->config.store, s->store, key, item->size,
		r->off, r->len, &r->data);

	if (n <= 0)
		return 0;
	if (r->off == 0)
		COUNT(c->config.counters, hits);
	COUNT_ADD(c->config.counters, hit_bytes, n);
	if (r->again && r->off == 0)
		COUNT_ADD(c->config.counters, reread_bytes, n);
	r->fill = NULL;
	return n;
}

static enum fetch_prio prio_of(const struct cache_read *r)
{
	return r->ahead ? PRIO_PLANNED : PRIO_DEMAND;
}

static void want_read(
	struct cache *c, struct fill *f, const struct cache_read *r)
{
	size_t first = r->off / FILL_PAGE_BYTES;
	size_t last = (r->off + r->len - 1) / FILL_PAGE_BYTES;

	fill_want(c, f, (unsigned)first, (unsigned)(last - first + 1),
		prio_of(r));
}

/* A fill that was made for this read: does it want no more than that? */
static bool read_asks_again(
	const struct cache *c, const struct fill *f, const struct cache_read *r)
{
	return r->off > 0 && f->present + f->wanted == 0 &&
		f->phase == FILL_WAITING && f->res.charged_bytes == 0 &&
		r->len < f->item.size && r->len <= AGAIN_MAX_BYTES &&
		c->passed[f->key.lo % AGAIN_ITEMS] == f->key.lo;
}

/*
 * A planned item that was read, and is fetched again because the kernel has
 * dropped pages before its reader had them.
 */
static void note_reread(struct fill *f, const struct cache_read *r)
{
	if (!r->again || f->present + f->wanted > 0)
		return;
	f->reread = f->carried = true;
	fill_spend(f);
}

/* Join a fill: answered from its memory, or parked. Lock held. */
static ssize_t read_join(struct cache *c, struct fill *f, struct cache_read *r)
{
	ASSERT_HELD(&c->lock);
	r->fill = f;
	list_init(&r->link);
	if (r->off == 0)
		COUNT(c->config.counters, misses);
	if (fill_has(f, r->off, r->len)) {
		fill_serve(c, f, r);
		fill_ref(f);
		r->data = f->buf + r->off;
		COUNT_ADD(c->config.counters, miss_bytes, r->len);
		return (ssize_t)r->len;
	}
	list_add_tail(&f->waiters, &r->link);
	c->parked++;
	if (read_asks_again(c, f, r))
		f->whole = false;
	note_reread(f, r);
	want_read(c, f, r);
	return 0;
}

int fill_find_or_make(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, bool last_try,
	struct fill **out)
{
	ASSERT_HELD(&c->lock);
	if (c->stopping)
		return -ENOTCONN;
	*out = fill_find(c, key);
	if (*out)
		return 0;
	/* Published between the caller's look and the lock? */
	if (!last_try && store_has(c->config.store, key, item->size))
		return -EEXIST;
	return fill_new(c, item, key, prio, out);
}

ssize_t cache_read(struct cache *c, struct cache_scratch *s,
	const struct cache_item *item, struct cache_read *r)
{
	struct hash128 key = cache_key(c, item);
	struct after a;
	struct fill *f;
	ssize_t n;

	after_init(&a);
	for (int i = 0;; i++) {
		if (store_has(c->config.store, key, item->size)) {
			n = read_hit(c, s, item, key, r);
			if (n > 0)
				return n;
		}
		pthread_mutex_lock(&c->lock);
		n = fill_find_or_make(
			c, item, key, prio_of(r), i == READ_TRIES, &f);
		if (n != -EEXIST)
			break;
		pthread_mutex_unlock(&c->lock);
	}
	if (n == 0)
		n = read_join(c, f, r);
	engine_run(c, &a);
	return n;
}

void cache_read_end(struct cache *c, struct cache_read *r)
{
	struct after a;

	if (!r->fill)
		return;
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	fill_unref(c, r->fill);
	r->fill = NULL;
	engine_run(c, &a);
}

void cache_prefetch(
	struct cache *c, const struct cache_item *item, size_t off, size_t len)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f;
	struct after a;

	if (store_has(c->config.store, key, item->size))
		return;
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	f = fill_find(c, key);
	if (!f && fill_find_or_make(c, item, key, PRIO_FILL, false, &f) == 0) {
		f->prefetched = true;
		COUNT(c->config.counters, prefetch_issued);
	}
	if (f) {
		size_t first = off / FILL_PAGE_BYTES;
		size_t last = (off + len - 1) / FILL_PAGE_BYTES;

		fill_want(c, f, (unsigned)first, (unsigned)(last - first + 1),
			PRIO_FILL);
	}
	engine_run(c, &a);
}

int cache_warm(
	struct cache *c, const struct cache_item *item, struct cache_warm *w)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f = NULL;
	struct after a;
	bool made;
	int rc;

	if (store_has(c->config.store, key, item->size))
		return -EEXIST;
	if (!store_ready(c->config.store))
		return -EAGAIN;
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	made = !fill_find(c, key);
	rc = fill_find_or_make(c, item, key, PRIO_FILL, false, &f);
	if (rc == 0 && f->res.charged_bytes == 0 &&
		f->phase != FILL_PUBLISHING && f->phase != FILL_MOVING) {
		rc = -ENOSPC;
		if (made)
			fill_leave_table(c, f);
	}
	if (rc == 0) {
		list_add_tail(&f->warms, &w->link);
		fill_want(c, f, 0, f->npages, PRIO_FILL);
	}
	engine_run(c, &a);
	return rc;
}

void cache_invalidate(struct cache *c, const struct cache_item *item)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f;
	struct after a;

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	f = fill_find(c, key);
	if (f) {
		f->ceased = true;
		fill_fail(c, f, -ESTALE, &a);
	}
	engine_run(c, &a);
	store_invalidate(c->config.store, key, item->size);
	part_discard(c, item, key);
}

void cache_settle(struct cache *c, uint64_t timeout_ns)
{
	uint64_t until = clock_now_ns() + timeout_ns;

	pthread_mutex_lock(&c->lock);
	while (c->npublishing > 0 &&
		cond_wait_until(&c->idle_cond, &c->lock, until))
		;
	pthread_mutex_unlock(&c->lock);
}

void cache_status(struct cache *c, struct cache_status *status)
{
	pthread_mutex_lock(&c->lock);
	*status = (struct cache_status){
		.staging_bytes = c->staging_used,
		.staging_peak_bytes = c->staging_peak,
		.staging_capacity_bytes = c->config.staging_bytes,
		.inflight = c->ninflight + c->nslow,
		.parked = c->parked,
		.surplus_depth = depth_limit(&c->surplus),
		.planned_bytes = c->planned,
		.planned_capacity_bytes = c->config.staging_bytes / 2,
	};
	pthread_mutex_unlock(&c->lock);
}
