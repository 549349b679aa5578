/* SPDX-License-Identifier: MIT */
/*
 * Parts of chunks in the tiers. A chunk becomes an entry when all of it has
 * been fetched. If only ranges of a chunk are read, its bytes have to leave
 * memory before it is complete, and the store keeps them as a part. When more
 * pages of the chunk are wanted, the part is read first. When the chunk is
 * complete, the part is deleted.
 *
 * Publishers write parts. Other threads read parts, so that a read, for which a
 * reader waits, does not queue behind publications. While a part is read or
 * written, the fill is MOVING: it answers readers from memory, but nothing is
 * fetched into it.
 */
#include "mount/cache/fill_part_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "mount/cache/cache_impl.h"

/* The maximum number of parts that are read or written at a time. It limits the
 * memory that a hanging tier can occupy. */
#define MOVES_MAX 16u
/* A part takes as much space in a tier as its whole chunk, so a part of less
 * than 1 / PART_DIVISOR of the chunk is not worth its space. */
#define PART_DIVISOR 4
/* When the mount ends, memory is not short, and bytes that are dropped would
 * have to be fetched again by the next mount. So smaller parts are written,
 * too, until 1 / KEEP_ROOM_DIVISOR of their tier is in use. */
#define KEEP_ROOM_DIVISOR 2
/* When the mount ends, it begins to write parts for at most this time. */
#define KEEP_NS (2 * NS_PER_S)
/* The number of fills, oldest first, among which to search for one to write. */
#define LOOK_MAX 64u

/* -- Work that blocks ------------------------------------------------------ */

static bool part_is_late(struct cache *c)
{
	CACHE_SCOPE(c);

	return cache_moves(c)->keep_until_ns &&
		clock_now_ns() > cache_moves(c)->keep_until_ns;
}

static int write_out(struct fill *f, const uint8_t *map)
{
	struct reservation res;
	bool ceased;

	res = fill_take_reservation(f->move.cache, f, &ceased);
	if (!ceased && res.charged_bytes > 0 && !part_is_late(f->move.cache))
		return store_part_write(f->move.cache->config.store, &res,
			f->key, f->buf, f->item.size, map);
	store_unreserve(f->move.cache->config.store, &res);
	return -ESTALE;
}

/* -- Begin and end of the job, with the lock held -------------------------- */

static void begin(struct cache *c, struct thread_pool *pool, struct fill *f,
	uint8_t *map, void (*run)(struct thread_job *job))
{
	ASSERT_INSIDE(c);
	f->map = map;
	f->phase = FILL_MOVING;
	fill_ref(f);
	cache_moves(c)->nmoving++;
	cache_moves(c)->npublishing++;
	thread_job_init(&f->move.job, run);
	thread_pool_submit(pool, &f->move.job);
}

/* End the job. Returns true if the fill is still in the table. */
static bool part_end(struct cache *c, struct fill *f)
{
	bool there = f->phase == FILL_MOVING;

	ASSERT_INSIDE(c);
	if (there)
		f->phase = FILL_FETCHING;
	cache_moves(c)->nmoving--;
	publish_ended(c);
	fill_unref(c, f);
	return there;
}

/* Add the pages of a part that was read. Now the missing pages can be
 * fetched. */
static void take_loaded(struct fill *f, const uint8_t *map)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < f->npages; i++) {
		if (!store_part_map_has(map, i))
			continue;
		f->wanted -= fill_page_is(f, i, PAGE_WANTED);
		f->page[i] |= PAGE_PRESENT;
		f->present++;
		bytes += fill_run_bytes(f, i, 1);
	}
	COUNT_ADD(f->move.cache->config.counters, part_bytes, bytes);
	f->in_part = f->present;
	if (f->wanted == 0)
		list_del(&f->queue);
}

/* Does the complete chunk need space in a tier? If the fill is not MOVING any
 * more, it is GONE, and its part must stay. */
static bool lacks_room(struct cache *c, const struct fill *f)
{
	CACHE_SCOPE(c);

	return f->phase == FILL_MOVING && f->res.charged_bytes == 0 &&
		!jobs_is_stopping(c);
}

/* Is the mount being stopped? Then parts stay in their tiers and are not read.
 */
static bool is_stopping(struct cache *c)
{
	CACHE_SCOPE(c);

	return jobs_is_stopping(c);
}

/* Replace the part by a reservation for the complete chunk. If that fails, the
 * part stays. */
static bool move_room(
	struct cache *c, const struct fill *f, struct reservation *res)
{
	return lacks_room(c, f) &&
		store_part_exchange(
			cache_config(c)->store, f->key, f->item.size, res);
}

static void load(struct thread_job *job)
{
	struct fill *f = CONTAINER_OF(job, struct fill, move.job);
	struct cache *c = f->move.cache;
	CLEANUP_FREE uint8_t *map = steal_ptr(&f->map);
	bool read = !is_stopping(c) &&
		store_part_read(cache_config(c)->store, f->key, f->item.size,
			f->buf, map);
	struct reservation res = {0};
	bool moved = read && move_room(c, f, &res);
	struct after a;

	jobs_enter(c, &a);
	if (part_end(c, f)) {
		if (read) {
			take_loaded(f, map);
			f->from = LATENCY_TIER;
		}
		if (moved) {
			f->in_part = 0;
			f->res = res;
			res = (struct reservation){0};
		}
		if (f->present == f->npages)
			fill_complete(c, f, &a);
		fill_answer(c, f, &a);
	}
	store_unreserve(cache_config(c)->store, &res);
	jobs_run(c, &a);
}

bool part_load(struct cache *c, struct fill *f)
{
	uint8_t *map;

	ASSERT_INSIDE(c);
	if (!part_map_bytes(&f->item) ||
		!store_part_has(cache_config(c)->store, f->key, f->item.size))
		return false;
	map = calloc(1, part_map_bytes(&f->item));
	if (!map)
		return false; /* without the part, the whole chunk is fetched */
	begin(c, cache_moves(c)->part_threads, f, map, load);
	return true;
}

/* Handle the end of writing a part, successful or not. If the fill was
 * requested in the meantime, it continues. Otherwise it is dropped, even if the
 * write failed. */
static void spilled(struct cache *c, struct fill *f, int rc, struct after *a)
{
	ASSERT_INSIDE(c);
	f->in_part = rc == 0 ? f->present : 0;
	if (fill_is_idle(f)) {
		fill_drop(c, f);
		return;
	}
	fill_reserve(c, f);
	fill_answer(c, f, a);
}

static void spill(struct thread_job *job)
{
	struct fill *f = CONTAINER_OF(job, struct fill, move.job);
	struct cache *c = f->move.cache;
	CLEANUP_FREE uint8_t *map = steal_ptr(&f->map);
	struct cache_item item = f->item;
	struct hash128 key = f->key;
	int rc = write_out(f, map);
	struct after a;
	bool ceased;

	jobs_enter(c, &a);
	ceased = f->phase == FILL_CEASED;
	if (part_end(c, f))
		spilled(c, f, rc, &a);
	jobs_run(c, &a);
	/* The version ceased while the part was written. The code that deletes
	 * the parts of such versions may have run before this part existed, so
	 * delete it here. */
	if (ceased)
		part_discard(c, &item, key);
}

bool part_is_possible(const struct fill *f)
{
	return (f->phase == FILL_FETCHING || f->phase == FILL_MOVING) &&
		part_map_bytes(&f->item) > 0;
}

/* Does the fill have pages that are not in its part, and reserved space? */
static bool has_news(const struct fill *f)
{
	return f->phase == FILL_FETCHING && part_is_possible(f) &&
		f->present > f->in_part && f->res.charged_bytes > 0;
}

static bool is_large(const struct fill *f)
{
	return f->present >= f->npages / PART_DIVISOR;
}

static bool may_spill(const struct cache *c, const struct fill *f)
{
	return has_news(f) && is_large(f) && fill_is_idle(f) &&
		f->claim != CLAIM_UNREAD && !jobs_is_stopping(c);
}

/* Start to write a part. Returns false if memory is short. */
static bool spill_begin(struct cache *c, struct fill *f)
{
	uint8_t *map = calloc(1, part_map_bytes(&f->item));

	if (!map)
		return false;
	for (size_t i = 0; i < f->npages; i++)
		if (fill_page_is(f, i, PAGE_PRESENT))
			store_part_map_set(map, i);
	begin(c, cache_moves(c)->publishers, f, map, spill);
	return true;
}

void part_spill(struct cache *c, unsigned n)
{
	unsigned looked = 0;

	ASSERT_INSIDE(c);
	if (cache_table(c)->nchunks == 0)
		return;
	LIST_FOREACH(l, &cache_staging(c)->staged) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (n == 0 || cache_moves(c)->nmoving >= MOVES_MAX ||
			looked++ >= LOOK_MAX)
			return;
		if (!may_spill(c, f))
			continue;
		if (!spill_begin(c, f))
			return;
		n--;
	}
}

/* Does the tier have space for small parts, counting reservations as used? */
static bool tier_is_roomy(struct cache *c, const struct fill *f)
{
	struct tier_status st;

	store_tier_status(cache_config(c)->store, f->res.tier, &st);
	return st.used_bytes + st.reserved_bytes <=
		st.capacity_bytes / KEEP_ROOM_DIVISOR;
}

/* Write the parts that have most of their chunk first, because there may be no
 * time for all. */
void part_keep_all(struct cache *c)
{
	ASSERT_INSIDE(c);
	cache_moves(c)->keep_until_ns = clock_now_ns() + KEEP_NS;
	LIST_FOREACH(l, &cache_staging(c)->staged) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (has_news(f) && is_large(f))
			(void)spill_begin(c, f);
	}
	LIST_FOREACH_SAFE(l, next, &cache_staging(c)->staged) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (f->phase != FILL_FETCHING ||
			(has_news(f) && tier_is_roomy(c, f) &&
				spill_begin(c, f)))
			continue;
		if (fill_is_idle(f))
			fill_drop(c, f);
	}
}
