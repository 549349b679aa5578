/* SPDX-License-Identifier: MIT */
/* The parts of struct cache. One lock guards all of them. Each part belongs to
 * one file, which gets the part from a function below and alone uses its
 * members. All other files call the functions of that file. */
#ifndef CACHE_IMPL_H
#define CACHE_IMPL_H

#include <stdatomic.h>

#include "mount/cache/cache.h"
#include "mount/cache/cache_jobs_impl.h"
#include "mount/cache/fetch_impl.h"
#include "mount/cache/fill_impl.h"
#include "mount/cache/fill_provider_impl.h"
#include "mount/store/store.h"

struct cache {
	struct cache_config config; /* set once */
	struct cache_jobs jobs;
	struct fill_table table;
	struct cache_requests requests;
	struct cache_asked asked;
	struct cache_staging staging;
	struct cache_moves moves;
	struct cache_readers readers;
	/* Size of fills with plans; guarded by the lock */
	uint64_t planned_bytes;
	/* The last timer to fire when the cache stops */
	struct timer last_timer;
	bool timers_quiet; /* last_timer has fired; guarded by the lock */
};

#define CACHE_LOCK(c) (&(c)->jobs.lock)
#define ASSERT_INSIDE(c) ASSERT_HELD(CACHE_LOCK(c))
#define CACHE_SCOPE(c) LOCK_SCOPE(CACHE_LOCK(c))

static inline const struct cache_config *cache_config(const struct cache *c)
{
	return &c->config;
}

/* Returns the level of the origin. A fill asks the provider of level 0 first,
 * and the origin last. */
static inline unsigned origin_level(const struct cache *c)
{
	return c->config.nproviders;
}

/* Returns the unit, in pages, in which chunks are fetched. `liked`: the unit
 * that the origin prefers; otherwise the smallest unit that all providers need.
 */
static inline unsigned cache_unit_pages(const struct cache *c, bool liked)
{
	return liked ? c->requests.unit_pages : c->asked.unit_pages;
}

static inline struct fill_table *cache_table(struct cache *c)
{
	return &c->table;
}

static inline struct flight *cache_flight(struct cache *c)
{
	return &c->requests.flight;
}

/* Returns the best length of a request to the origin. */
static inline size_t cache_request_bytes(const struct cache *c)
{
	return c->requests.bytes;
}

static inline struct cache_asked *cache_asked(struct cache *c)
{
	return &c->asked;
}

static inline struct cache_staging *cache_staging(struct cache *c)
{
	return &c->staging;
}

static inline struct cache_moves *cache_moves(struct cache *c)
{
	return &c->moves;
}

static inline struct cache_readers *cache_readers(struct cache *c)
{
	return &c->readers;
}

/* Does an analysis hide some items? */
static inline bool cache_masked(const struct cache *c)
{
	const struct cache_mask *m = c->config.mask;

	return m &&
		atomic_load_explicit(&m->limit, memory_order_relaxed) !=
		CACHE_MASK_NONE;
}

/* Does a provider keep items instead of the tiers? */
static inline bool providers_instead(const struct cache *c)
{
	for (unsigned i = 0; i < origin_level(c); i++)
		if (provider_instead(c->config.provider[i]))
			return true;
	return false;
}

/* Does an analysis hide this item? */
static inline bool cache_hides(const struct cache *c, struct hash128 key)
{
	return cache_masked(c) &&
		key.hi >= atomic_load_explicit(
				  &c->config.mask->limit, memory_order_relaxed);
}

/* Count how long a read that is answered now has taken, and record the read if
 * reads are traced. In cache_read.c. */
void cache_read_timed(const struct cache *c, const struct cache_item *item,
	const struct cache_read *r, enum latency_kind source, uint64_t now_ns);

/* Does a tier have the item, and no analysis hide it? */
static inline bool cache_tier_has(
	const struct cache *c, struct hash128 key, uint64_t item_bytes)
{
	return store_has(c->config.store, key, item_bytes) &&
		!cache_hides(c, key);
}

#endif
