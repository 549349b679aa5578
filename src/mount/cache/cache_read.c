/* SPDX-License-Identifier: MIT */
/*
 * The front of the cache: reads, warming, invalidation. Called by handlers, by
 * the thread that follows plans, and by commands. One lock guards fills; a hit
 * in a tier never takes it. Lock order: cache.lock, then locks inside the
 * store, the origin, the timers and the manifest (path()).
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/trace.h"
#include "common/format/key.h"
#include "mount/cache/fill_part_impl.h"

/* An entry may be published and deleted between a failed read and the look-up
 * that follows. This number of tries is enough. */
#define READ_TRIES 3

static void trace_timed(struct read_trace *trace, const struct cache_item *item,
	const struct cache_read *r, enum latency_kind source, uint64_t now_ns)
{
	read_trace_add(trace,
		&(struct read_record){
			.end_ns = now_ns,
			.ns = now_ns - r->begun_ns,
			.node = item->cookie,
			.off = item->base + r->off,
			.len = (uint32_t)r->len,
			.thread = r->thread,
			.source = source,
		});
}

void cache_read_timed(const struct cache *c, const struct cache_item *item,
	const struct cache_read *r, enum latency_kind source, uint64_t now_ns)
{
	const struct counters *counters = cache_config(c)->counters;
	struct read_trace *trace = counters_trace(counters);

	if (source != READ_TRACE_FAILED)
		COUNT_TIME(counters, source, now_ns - r->begun_ns);
	if (trace)
		trace_timed(trace, item, r, source, now_ns);
}

/* Like cache_read_timed(), for a hit. */
static void hit_timed(const struct cache *c, const struct cache_item *item,
	const struct cache_read *r)
{
	const struct counters *counters = cache_config(c)->counters;
	struct read_trace *trace = counters_trace(counters);
	uint64_t now_ns = clock_now_ns();

	COUNT_TIME(counters, LATENCY_TIER, now_ns - r->begun_ns);
	if (!trace)
		return;
	read_trace_meet(trace, r->thread, r->begun_ns);
	trace_timed(trace, item, r, LATENCY_TIER, now_ns);
}

/* Note who reads what is not in a tier. The answer is timed with the cache's
 * lock held, and perhaps by a thread of the origin. */
static void meet_reader(const struct cache *c, const struct cache_read *r)
{
	struct read_trace *trace = counters_trace(cache_config(c)->counters);

	if (trace)
		read_trace_meet(trace, r->thread, r->begun_ns);
}

/* Read from a tier. Returns 0 if no tier has the item or an analysis hides
 * it. */
static ssize_t read_hit(struct cache *c, struct store_scratch *s,
	const struct cache_item *item, struct hash128 key, struct cache_read *r)
{
	ssize_t n;

	if (cache_hides(c, key))
		return 0;
	n = store_read(cache_config(c)->store, s, key, item->size, r->off,
		r->len, &r->data);
	if (n <= 0)
		return 0;
	TRACE(hit, item->cookie, item->base, r->off, n);
	if (r->off == 0)
		COUNT(cache_config(c)->counters, hits);
	COUNT_ADD(cache_config(c)->counters, hit_bytes, n);
	if (r->again_bytes > 0)
		COUNT_ADD(cache_config(c)->counters, reread_bytes,
			r->again_bytes);
	r->fill = NULL;
	return n;
}

ssize_t cache_read(struct cache *c, struct store_scratch *s,
	const struct cache_item *item, struct cache_read *r)
{
	struct hash128 key = cache_key(c, item);
	struct after a;
	struct fill *f;
	ssize_t n;

	r->begun_ns = clock_now_ns();
	for (int i = 0;; i++) {
		n = read_hit(c, s, item, key, r);
		if (n > 0) {
			hit_timed(c, item, r);
			return n;
		}
		if (i == 0)
			meet_reader(c, r);
		jobs_enter_serving(c, &a);
		n = fill_find_or_make(
			c, item, key, read_prio(r), i == READ_TRIES, &f);
		if (n != -EEXIST)
			break;
		jobs_unlock(c);
	}
	if (n == 0)
		n = fill_join(c, f, r);
	jobs_run(c, &a);
	return n;
}

void cache_read_end(struct cache *c, struct cache_read *r)
{
	struct after a;

	if (!r->fill)
		return;
	jobs_enter(c, &a);
	fill_unref(c, r->fill);
	r->fill = NULL;
	jobs_run(c, &a);
}

void cache_prefetch(
	struct cache *c, const struct cache_item *item, size_t off, size_t len)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f;
	struct after a;

	if (cache_tier_has(c, key, item->size))
		return;
	jobs_enter(c, &a);
	f = fill_find(c, key);
	if (!f && fill_find_or_make(c, item, key, PRIO_FILL, false, &f) == 0)
		fill_prefetched(c, f);
	if (f)
		fill_want_bytes(c, f, off, len, PRIO_FILL);
	jobs_run(c, &a);
}

int cache_warm(
	struct cache *c, const struct cache_item *item, struct cache_warm *w)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f = NULL;
	struct after a;
	bool made;
	int rc;

	if (store_has(cache_config(c)->store, key, item->size))
		return -EEXIST;
	if (!store_ready(cache_config(c)->store))
		return -EAGAIN;
	jobs_enter(c, &a);
	made = !fill_find(c, key);
	rc = fill_find_or_make(c, item, key, PRIO_FILL, false, &f);
	if (rc == 0 && !fill_has_tier(f) && !providers_instead(c)) {
		rc = -ENOSPC;
		if (made)
			fill_leave_table(c, f, FILL_GONE);
	}
	if (rc == 0)
		fill_warm(c, f, w);
	jobs_run(c, &a);
	return rc;
}

void cache_invalidate(struct cache *c, const struct cache_item *item)
{
	struct hash128 key = cache_key(c, item);
	struct fill *f;
	struct after a;

	jobs_enter(c, &a);
	f = fill_find(c, key);
	if (f)
		fill_cease(c, f, &a);
	jobs_run(c, &a);
	store_invalidate(cache_config(c)->store, key, item->size);
	part_discard(c, item, key);
}

void cache_status(struct cache *c, struct cache_status *status)
{
	*status = (struct cache_status){
		.staging_capacity_bytes = cache_config(c)->staging_bytes,
		.planned_capacity_bytes = cache_ahead_bytes(c),
	};
	jobs_lock(c);
	room_status(c, status);
	status->inflight = flight_out(cache_flight(c));
	readers_status(c, status);
	status->surplus_depth = depth_limit(flight_depth(cache_flight(c)));
	status->planned_bytes = planned_bytes(c);
	jobs_unlock(c);
}

uint64_t cache_latency_ns(struct cache *c)
{
	return depth_recent_ns(flight_depth(cache_flight(c)));
}
