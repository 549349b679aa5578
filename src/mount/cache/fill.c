/* SPDX-License-Identifier: MIT */
/*
 * A fill, its pages, and the queues that it is in. fill_impl.h draws its
 * states. fill_serve.c handles the reads that wait for it, staging_room.c its
 * memory. All functions run with the cache's lock held, on any thread:
 * handlers, origins, publishers.
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "mount/cache/fill_part_impl.h"

void fill_table_init(struct cache *c)
{
	struct fill_table *t = cache_table(c);

	for (unsigned i = 0; i < CACHE_BUCKETS; i++)
		list_init(&t->bucket[i]);
	for (unsigned i = 0; i <= PROVIDERS_MAX; i++)
		for (unsigned j = 0; j < PRIO_COUNT; j++)
			list_init(&t->queue[i][j]);
}

static struct list *fill_bucket_of(struct cache *c, struct hash128 key)
{
	return &cache_table(c)->bucket[key.lo % CACHE_BUCKETS];
}

struct fill *fill_find(struct cache *c, struct hash128 key)
{
	struct list *head = fill_bucket_of(c, key);

	ASSERT_INSIDE(c);
	LIST_FOREACH(l, head) {
		struct fill *f = CONTAINER_OF(l, struct fill, bucket);

		if (f->key.lo == key.lo && f->key.hi == key.hi)
			return f;
	}
	return NULL;
}

static void fill_init_lists(struct fill *f)
{
	list_init(&f->queue);
	list_init(&f->age);
	list_init(&f->move.link);
	list_init(&f->stale);
	list_init(&f->waiters);
	list_init(&f->warms);
	list_init(&f->plans);
}

/* Reserve space in a tier. If no tier has enough, the item will only be served
 * from memory. */
void fill_reserve(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	if (f->item.barred || cache_masked(c) ||
		(providers_instead(c) && f->offer != OFFER_REFUSED) ||
		store_reserve(cache_config(c)->store, f->item.size, &f->res) <
			0)
		f->res = (struct reservation){0};
}

/* Create a fill, and reserve space in a tier if there is enough. */
static int fill_new(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, struct fill **out)
{
	unsigned npages = fill_pages(item->size);
	struct fill *f = calloc(1, sizeof(*f) + npages);
	int rc;

	ASSERT_INSIDE(c);
	if (!f)
		return -ENOMEM;
	rc = item_path(c, item, &f->path);
	if (rc < 0) {
		free(f);
		return rc;
	}
	f->move.cache = c;
	f->move.fill = f;
	f->key = key;
	f->item = *item;
	f->made_ns = clock_now_ns();
	f->prio = prio;
	f->npages = npages;
	f->whole = item->size == item->version.size_bytes;
	f->phase = FILL_WAITING;
	f->refs = 1;
	fill_init_lists(f);
	list_add_tail(fill_bucket_of(c, key), &f->bucket);
	cache_table(c)->nchunks += part_map_bytes(item) > 0;
	fill_reserve(c, f);
	*out = f;
	return 0;
}

void fill_end_all(struct cache *c, struct after *a, fill_end_fn *end)
{
	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < CACHE_BUCKETS; i++)
		LIST_FOREACH_SAFE(l, next, &cache_table(c)->bucket[i]) {
			struct fill *f = CONTAINER_OF(l, struct fill, bucket);

			/* Publication goes on when the mount ends, because the
			 * fill is complete. */
			if (f->phase != FILL_PUBLISHING)
				end(c, f, -ENOTCONN, a);
		}
}

void fill_describe(const struct fill *f, struct provider_item *item)
{
	*item = (struct provider_item){
		.key = f->key,
		.path = f->path,
		.version = f->item.version,
		.base = f->item.base,
		.size = f->item.size,
	};
}

void fill_ref(struct fill *f)
{
	ASSERT_INSIDE(f->move.cache);
	f->refs++;
}

void fill_close_file(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	if (f->file)
		origin_file_free(cache_config(c)->origin, f->file);
	f->file = NULL;
}

static void fill_free(struct cache *c, struct fill *f)
{
	list_del(&f->age);
	if (f->buf)
		cache_staging(c)->used -= f->item.size;
	fill_close_file(c, f);
	free(f->memory);
	free(f->path);
	free(f);
}

void fill_unref(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	if (--f->refs == 0)
		fill_free(c, f);
}

void fill_end_plans(struct cache *c, struct fill *f, int status)
{
	if (planned_end(c, &f->plans, f->item.size, status))
		fill_line_up(c, f);
}

void fill_leave_table(struct cache *c, struct fill *f, enum fill_phase gone)
{
	ASSERT_INSIDE(c);
	if (fill_is_gone(f))
		return;
	f->phase = gone;
	fill_settle(c, f);
	cache_table(c)->nchunks -= part_map_bytes(&f->item) > 0;
	list_del(&f->bucket);
	list_del(&f->queue);
	list_del(&f->age);
	store_unreserve(cache_config(c)->store, &f->res);
	if (f->claim == CLAIM_UNREAD)
		COUNT(cache_config(c)->counters, prefetch_wasted);
	fill_end_plans(c, f, -ECANCELED);
	fill_unref(c, f);
}

/* -- Queues ---------------------------------------------------------------- */

struct list *fill_queue(struct cache *c, unsigned level, enum fetch_prio prio)
{
	ASSERT_INSIDE(c);
	return &cache_table(c)->queue[level][prio];
}

bool fill_ahead_wanted(struct cache *c)
{
	unsigned level = origin_level(c);

	return !list_empty(fill_queue(c, level, PRIO_PLANNED)) ||
		!list_empty(fill_queue(c, level, PRIO_FILL));
}

bool fill_wants_level(struct cache *c, const struct fill *f)
{
	if (origin_level(c) == 0)
		return f->wanted > 0;
	for (unsigned i = 0; i < f->npages; i++)
		if (fill_page_is_next(f, i))
			return true;
	return false;
}

/* Set the level to that of the first provider that may have a wanted page. */
static void set_level(struct cache *c, struct fill *f)
{
	unsigned level = origin_level(c);

	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < f->npages && level > 0; i++)
		if (fill_page_is(f, i, PAGE_WANTED) &&
			fill_page_level(f, i) < level)
			level = fill_page_level(f, i);
	f->level = level;
}

void fill_queue_again(struct cache *c, struct fill *f)
{
	list_del(&f->queue);
	if (f->wanted == 0)
		return;
	set_level(c, f);
	list_add_tail(fill_queue(c, f->level, f->prio), &f->queue);
}

/*
 * Returns the fill before which to queue this one, or the queue itself. A fill
 * of priority PLANNED without a plan belongs to a reader that reads ahead and
 * has overtaken its plan. It will need the bytes sooner than the planned fills
 * that have not begun, so its fill goes before them.
 */
static struct list *next_in_queue(struct cache *c, const struct fill *f)
{
	struct list *queue = fill_queue(c, f->level, f->prio);

	if (f->prio != PRIO_PLANNED || !list_empty(&f->plans))
		return queue;
	LIST_FOREACH(l, queue) {
		const struct fill *g = CONTAINER_OF(l, struct fill, queue);

		if (!g->buf && !list_empty(&g->plans))
			return l;
	}
	return queue;
}

/* -- Pages ----------------------------------------------------------------- */

/* Will the mount need all bytes of a unit if it fetches the whole unit? It will
 * if a tier or a provider keeps the item, or if this read is at the beginning
 * of the file and therefore likely to continue. */
static bool fill_is_useful(
	const struct cache *c, const struct fill *f, unsigned first)
{
	return f->whole || fill_has_tier(f) || providers_instead(c) ||
		f->item.base + first == 0;
}

/* Want pages [first, first + n) or, if the item is a whole file, all pages. If
 * the priority rises, the fill moves to another queue. If all bytes of a unit
 * will be needed, want whole units, beginning with the unit of page `first`. A
 * fetch ahead always goes to the end of its unit. */
void fill_want(struct cache *c, struct fill *f, unsigned first, unsigned n,
	enum fetch_prio prio)
{
	bool useful = fill_is_useful(c, f, first);
	unsigned unit = cache_unit_pages(c, useful);
	unsigned begin = first / unit * unit, to;

	ASSERT_INSIDE(c);
	unit = cache_unit_pages(c, useful || prio == PRIO_FILL);
	to = (first + n + unit - 1) / unit * unit;
	if (f->whole || to > f->npages)
		to = f->npages;
	if (prio == PRIO_DEMAND && f->claim == CLAIM_PLANNED)
		f->claim = CLAIM_ASKED;
	if (prio == PRIO_DEMAND && cache_asked(c)->n > 0)
		providers_hurry(c, f);
	if (f->present + f->wanted < f->npages)
		for (unsigned i = f->whole ? 0 : begin; i < to; i++)
			if (fill_page_is(f, i, PAGE_ABSENT)) {
				f->page[i] |= PAGE_WANTED;
				f->wanted++;
			}
	if (f->wanted == 0)
		return;
	if (fill_page_is(f, first, PAGE_WANTED))
		f->cursor = begin;
	if (prio < f->prio) {
		f->prio = prio;
		list_del(&f->queue);
	}
	if (list_empty(&f->queue)) {
		set_level(c, f);
		list_add_tail(next_in_queue(c, f), &f->queue);
	}
}

void fill_want_bytes(struct cache *c, struct fill *f, size_t off, size_t len,
	enum fetch_prio prio)
{
	size_t first = off / FILL_PAGE_BYTES;
	size_t last = (off + len - 1) / FILL_PAGE_BYTES;

	fill_want(c, f, (unsigned)first, (unsigned)(last - first + 1), prio);
}

void fill_prefetched(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	f->claim = CLAIM_UNREAD;
	COUNT(cache_config(c)->counters, prefetch_issued);
}

bool fill_has_tier(const struct fill *f)
{
	ASSERT_INSIDE(f->move.cache);
	return f->res.charged_bytes > 0 || f->phase == FILL_PUBLISHING ||
		f->phase == FILL_MOVING;
}

struct reservation fill_take_reservation(
	struct cache *c, struct fill *f, bool *ceased)
{
	struct reservation res;
	CACHE_SCOPE(c);

	res = f->res;
	f->res = (struct reservation){0};
	*ceased = f->phase == FILL_CEASED;
	return res;
}

bool fill_has(const struct fill *f, size_t off, size_t len)
{
	size_t last = (off + len - 1) / FILL_PAGE_BYTES;

	ASSERT_INSIDE(f->move.cache);
	if (f->present == f->npages)
		return true;
	for (size_t i = off / FILL_PAGE_BYTES; i <= last; i++)
		if (!fill_page_is(f, i, PAGE_PRESENT))
			return false;
	return true;
}

/* Move the fill to the end of the list of fills that may be dropped to free
 * memory. A fill that may not be dropped now leaves the list, so that a search
 * for memory does not have to skip it. */
void fill_line_up(struct cache *c, struct fill *f)
{
	bool stays = !f->buf || !list_empty(&f->plans) ||
		f->phase == FILL_PUBLISHING || fill_is_gone(f);

	ASSERT_INSIDE(c);
	list_del(&f->age);
	if (!stays)
		list_add_tail(&cache_staging(c)->staged, &f->age);
}

/* Mark all pages as read by somebody, so that a later read of the entry does
 * not count as its first read. */
void fill_spend(struct fill *f)
{
	ASSERT_INSIDE(f->move.cache);
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] |= PAGE_SPENT;
}

size_t fill_run_bytes(const struct fill *f, unsigned first, unsigned n)
{
	uint64_t left = f->item.size - (uint64_t)first * FILL_PAGE_BYTES;
	size_t bytes = (size_t)n * FILL_PAGE_BYTES;

	return bytes < left ? bytes : (size_t)left;
}

void fill_put(struct fill *f, unsigned first, size_t at, const void *bytes,
	size_t len)
{
	memcpy(fill_at(f, first) + at, bytes, len);
}

uint64_t fill_bytes_without(const struct fill *f, unsigned flag)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < f->npages; i++)
		if (!(f->page[i] & flag))
			bytes += fill_run_bytes(f, i, 1);
	return bytes;
}

bool fill_is_idle(const struct fill *f)
{
	ASSERT_INSIDE(f->move.cache);
	return f->refs == 1 && f->wanted == 0 && list_empty(&f->waiters) &&
		list_empty(&f->plans);
}

/* A request that is not barred has joined a fill that was made for one that
 * is. A complete fill stays without a tier. */
static void fill_unbar(struct cache *c, struct fill *f)
{
	f->item.barred = false;
	if (f->phase == FILL_WAITING || f->phase == FILL_FETCHING)
		fill_reserve(c, f);
}

int fill_find_or_make(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, bool last_try,
	struct fill **out)
{
	ASSERT_INSIDE(c);
	if (jobs_is_stopping(c))
		return -ENOTCONN;
	*out = fill_find(c, key);
	if (*out && (*out)->item.barred && !item->barred)
		fill_unbar(c, *out);
	if (*out)
		return 0;
	/* The item may have been published between the caller's look-up and
	 * this lock. */
	if (!last_try && cache_tier_has(c, key, item->size))
		return -EEXIST;
	return fill_new(c, item, key, prio, out);
}

void fill_mark(struct fill *f, unsigned first, unsigned n, enum page_state s)
{
	ASSERT_INSIDE(f->move.cache);
	for (unsigned i = first; i < first + n; i++)
		f->page[i] = (uint8_t)((f->page[i] & ~PAGE_STATE_MASK) | s);
}

void fill_ask_next(struct cache *c, struct fill *f, unsigned first, unsigned n,
	unsigned level)
{
	ASSERT_INSIDE(c);
	fill_mark(f, first, n, PAGE_ABSENT);
	for (unsigned i = first; i < first + n; i++)
		f->page[i] = (uint8_t)((f->page[i] & 0xf) | level << 4);
	if (!fill_is_gone(f) && !jobs_is_stopping(c))
		fill_want(c, f, first, n, f->prio);
}

/* -- Providers ---------------------------------------------------------------
 */

static bool fill_is_fetched(const struct fill *f)
{
	unsigned i = 0;

	return !fill_is_gone(f) &&
		(f->wanted > 0 || fill_run_inflight(f, f->npages, &i) > 0);
}

void fill_settle(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	if (!f->owing || f->npushing > 0 || fill_is_fetched(f))
		return;
	f->owing = false;
	providers_ended(c, f);
}

void fill_pushed(struct cache *c, struct fill *f)
{
	f->npushing--;
	fill_settle(c, f);
	fill_unref(c, f);
}

bool fill_is_news(
	const struct cache *c, const struct fill *f, unsigned first, unsigned n)
{
	bool news = false;

	ASSERT_INSIDE(c);
	for (unsigned i = first; i < first + n; i++) {
		if (!fill_page_is(f, i, PAGE_PRESENT))
			return false;
		news |= fill_page_level(f, i) == origin_level(c);
	}
	return news && f->phase != FILL_CEASED;
}

unsigned fill_run_inflight(const struct fill *f, unsigned end, unsigned *i)
{
	unsigned first;

	ASSERT_INSIDE(f->move.cache);
	while (*i < end && !fill_page_is(f, *i, PAGE_INFLIGHT))
		++*i;
	for (first = *i; *i < end && fill_page_is(f, *i, PAGE_INFLIGHT); ++*i)
		;
	return *i - first;
}
