/* SPDX-License-Identifier: MIT */
/*
 * The life of a fill; see the table in fill_impl.h. Everything here runs with
 * the cache's lock held, on whatever thread asks: handlers, origins,
 * publishers.
 */
#include "cache/fill_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/key.h"
#include "base/lock.h"
#include "cache/part_impl.h"

/* Parts that make room for one more item. */
#define SPILL_AT_ONCE 2

/* The longest path that an origin is asked for, NUL included. */
#define FILL_PATH_MAX 8192

static struct list *fill_bucket_of(struct cache *c, struct hash128 key)
{
	return &c->table[key.lo % CACHE_BUCKETS];
}

struct fill *fill_find(struct cache *c, struct hash128 key)
{
	struct list *head = fill_bucket_of(c, key);

	ASSERT_HELD(&c->lock);
	LIST_FOREACH(l, head) {
		struct fill *f = CONTAINER_OF(l, struct fill, bucket);

		if (f->key.lo == key.lo && f->key.hi == key.hi)
			return f;
	}
	return NULL;
}

/*
 * Its cookie may stand for another file by now, and many files of a dataset are
 * alike in size and time: the bytes of one must not be kept as another's.
 */
static int copy_path(struct cache *c, const struct cache_item *item, char **out)
{
	char path[FILL_PATH_MAX];
	int len =
		c->config.path(c->config.arg, item->cookie, path, sizeof(path));
	struct hash128 digest;

	if (len < 0)
		return len;
	digest = key_digest(path);
	if (digest.hi != item->digest.hi || digest.lo != item->digest.lo)
		return -ESTALE;
	*out = strdup(path);
	return *out ? 0 : -ENOMEM;
}

static void fill_init_lists(struct fill *f)
{
	list_init(&f->queue);
	list_init(&f->age);
	list_init(&f->publish);
	list_init(&f->waiters);
	list_init(&f->warms);
	list_init(&f->plans);
}

/* Without room in a tier the item passes through. */
void fill_reserve(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	if (store_reserve(c->config.store, f->item.size, &f->res) < 0)
		f->res = (struct reservation){0};
}

/*
 * A fill in the table, with room in a tier reserved if there is some. 0,
 * -ENOMEM, or what path() says.
 */
int fill_new(struct cache *c, const struct cache_item *item, struct hash128 key,
	enum fetch_prio prio, struct fill **out)
{
	unsigned npages = (unsigned)((item->size + FILL_PAGE_BYTES - 1) /
		FILL_PAGE_BYTES);
	struct fill *f = calloc(1, sizeof(*f) + npages);
	int rc;

	ASSERT_HELD(&c->lock);
	if (!f)
		return -ENOMEM;
	rc = copy_path(c, item, &f->path);
	if (rc < 0) {
		free(f);
		return rc;
	}
	f->cache = c;
	f->key = key;
	f->item = *item;
	f->prio = prio;
	f->npages = npages;
	f->whole = item->size == item->version.size_bytes;
	f->phase = FILL_WAITING;
	f->refs = 1;
	fill_init_lists(f);
	list_add_tail(fill_bucket_of(c, key), &f->bucket);
	c->nchunks += part_tail_bytes(item) > 0;
	fill_reserve(c, f);
	*out = f;
	return 0;
}

void fill_ref(struct fill *f)
{
	f->refs++;
}

static void close_file(struct cache *c, struct fill *f)
{
	if (f->file)
		origin_file_free(c->config.origin, f->file);
	f->file = NULL;
}

static void fill_free(struct cache *c, struct fill *f)
{
	list_del(&f->age);
	if (f->buf)
		c->staging_used -= f->item.size;
	close_file(c, f);
	free(f->buf);
	free(f->path);
	free(f);
}

void fill_unref(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	if (--f->refs == 0)
		fill_free(c, f);
}

/* Out of the table for good; the reservation ends. */
void fill_leave_table(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	if (f->phase == FILL_GONE)
		return;
	f->phase = FILL_GONE;
	c->nchunks -= part_tail_bytes(&f->item) > 0;
	list_del(&f->bucket);
	list_del(&f->queue);
	list_del(&f->age);
	store_unreserve(c->config.store, &f->res);
	if (f->prefetched)
		COUNT(c->config.counters, prefetch_wasted);
	planned_end(c, f, -ECANCELED);
	fill_unref(c, f);
}

/*
 * Ask for pages [first, first + n), or for all of a whole file's. A request
 * of higher priority lifts what is queued.
 */
void fill_want(struct cache *c, struct fill *f, unsigned first, unsigned n,
	enum fetch_prio prio)
{
	unsigned from = f->whole ? 0 : first;
	unsigned to = f->whole ? f->npages : first + n;

	ASSERT_HELD(&c->lock);
	if (prio == PRIO_DEMAND)
		f->ahead = false;
	if (f->present + f->wanted < f->npages)
		for (unsigned i = from; i < to; i++)
			if ((f->page[i] & PAGE_STATE_MASK) == PAGE_ABSENT) {
				f->page[i] |= PAGE_WANTED;
				f->wanted++;
			}
	if (f->wanted == 0)
		return;
	if ((f->page[first] & PAGE_STATE_MASK) == PAGE_WANTED)
		f->cursor = first;
	if (prio < f->prio) {
		f->prio = prio;
		list_del(&f->queue);
	}
	if (list_empty(&f->queue)) {
		fill_set_level(c, f);
		list_add_tail(fill_queue(c, f), &f->queue);
	}
}

bool fill_has(const struct fill *f, size_t off, size_t len)
{
	size_t last = (off + len - 1) / FILL_PAGE_BYTES;

	if (f->present == f->npages)
		return true;
	for (size_t i = off / FILL_PAGE_BYTES; i <= last; i++)
		if ((f->page[i] & PAGE_STATE_MASK) != PAGE_PRESENT)
			return false;
	return true;
}

static void arm_drain_timer(struct cache *c, uint64_t at_ns)
{
	/* Without the timer the item stays until its memory is wanted. */
	if (!c->stopping)
		(void)timer_set(c->config.timers, &c->drain_timer, at_ns);
}

static void tell_passed(struct cache *c, const struct fill *f)
{
	if (c->config.passed)
		c->config.passed(c->config.arg, &f->item);
}

/*
 * Move the fill to the end of the list of fills that are dropped when memory is
 * needed, unless it cannot be dropped now: a search for memory should not walk
 * past such fills.
 */
void fill_line_up(struct cache *c, struct fill *f)
{
	bool stays = !f->buf || !list_empty(&f->plans) ||
		f->phase == FILL_PUBLISHING || f->phase == FILL_GONE;

	ASSERT_HELD(&c->lock);
	list_del(&f->age);
	if (!stays)
		list_add_tail(&c->staged, &f->age);
}

/* It has been served to its end, and another plan holds it: so once more. */
void fill_turn(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] &= (uint8_t)~PAGE_SERVED;
	f->served = 0;
	f->turned = true;
	fill_line_up(c, f);
}

/* All bytes were served, and nobody plans it: the first to go. */
void fill_pass(struct cache *c, struct fill *f)
{
	bool first = list_empty(&c->drained);

	ASSERT_HELD(&c->lock);
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] |= PAGE_SERVED;
	f->served = f->npages;
	list_del(&f->age);
	list_add_tail(&c->drained, &f->age);
	if (first)
		arm_drain_timer(c, f->last_read_ns + DRAINED_GRACE_NS);
}

static void fill_drained(struct cache *c, struct fill *f)
{
	planned_read(c, f);
	if (list_empty(&f->plans)) {
		fill_pass(c, f);
		return;
	}
	/* The kernel is to ask for it again when its next reader comes. */
	tell_passed(c, f);
	fill_turn(c, f);
}

/* The bytes of a page in [off, end). */
static size_t page_share(size_t page, size_t off, size_t end)
{
	size_t from = page * FILL_PAGE_BYTES, to = from + FILL_PAGE_BYTES;

	return (to < end ? to : end) - (from > off ? from : off);
}

/* Later reads of its entry no longer count as first reads. */
void fill_spend(struct fill *f)
{
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] |= PAGE_SPENT;
}

/*
 * A position of a plan has come to the item. It has all of it from now on,
 * whatever of it the kernel still has or asks for twice.
 */
void fill_begun(struct cache *c, struct fill *f)
{
	COUNT_ADD(c->config.counters, prefetch_carried_bytes,
		f->item.size - fill_bytes_without(f, PAGE_SPENT));
	fill_spend(f);
	f->carried = true;
}

/*
 * Its bytes go to a reader. A page counts as served with its last byte, so it
 * is not known of the first of a read whether it was, unless it begins it. Of
 * a position only the beginning counts.
 */
void fill_serve(struct cache *c, struct fill *f, const struct cache_read *r)
{
	size_t end = r->off + r->len, again = 0;
	size_t to = end == f->item.size ? f->npages : end / FILL_PAGE_BYTES;

	ASSERT_HELD(&c->lock);
	if (f->prefetched) {
		f->prefetched = false;
		COUNT(c->config.counters, prefetch_used);
	}
	if (r->planned && r->off == 0 && !r->again)
		fill_begun(c, f);
	for (size_t i = r->off / FILL_PAGE_BYTES; i < to; i++) {
		if (!r->planned && f->page[i] & PAGE_SPENT)
			again += page_share(i, r->off, end);
		f->served += !(f->page[i] & PAGE_SERVED);
		f->page[i] |= PAGE_SERVED | PAGE_SPENT;
	}
	if (f->carried)
		COUNT_ADD(c->config.counters, prefetch_carried_bytes, again);
	f->last_read_ns = clock_now_ns();
	if (f->phase == FILL_STAGED && f->served == f->npages)
		fill_drained(c, f);
}

uint64_t fill_bytes_without(const struct fill *f, unsigned flag)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < f->npages; i++) {
		uint64_t left = f->item.size - (uint64_t)i * FILL_PAGE_BYTES;

		if (!(f->page[i] & flag))
			bytes +=
				left < FILL_PAGE_BYTES ? left : FILL_PAGE_BYTES;
	}
	return bytes;
}

bool fill_is_idle(const struct fill *f)
{
	return f->refs == 1 && f->wanted == 0 && list_empty(&f->waiters) &&
		list_empty(&f->plans);
}

static void fill_passed(struct cache *c, const struct fill *f)
{
	c->passed[f->key.lo % AGAIN_ITEMS] = f->key.lo;
	tell_passed(c, f);
}

void fill_drop(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	/* The last page may be shorter; that it came alone is rare. */
	if (f->phase == FILL_FETCHING)
		COUNT_ADD(c->config.counters, partial_dropped,
			(f->present - f->kept) * FILL_PAGE_BYTES);
	if (f->phase == FILL_STAGED && f->served < f->npages)
		COUNT(c->config.counters, staging_dropped);
	else if (f->phase == FILL_STAGED)
		fill_passed(c, f);
	fill_leave_table(c, f);
}

void fill_expire_drained(struct cache *c, uint64_t now_ns)
{
	ASSERT_HELD(&c->lock);
	LIST_FOREACH_SAFE(l, next, &c->drained) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (f->last_read_ns + DRAINED_GRACE_NS > now_ns) {
			arm_drain_timer(c, f->last_read_ns + DRAINED_GRACE_NS);
			return;
		}
		if (fill_is_idle(f))
			fill_drop(c, f);
	}
	if (!list_empty(&c->drained))
		arm_drain_timer(c, now_ns + DRAINED_GRACE_NS);
}

/*
 * Drop idle fills of one list, oldest first, until `need` bytes fit: those that
 * nobody has read since `quiet_ns`.
 */
static bool fill_make_room(struct cache *c, struct list *head, uint64_t need,
	uint64_t bound, uint64_t quiet_ns)
{
	ASSERT_HELD(&c->lock);
	LIST_FOREACH_SAFE(l, next, head) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (c->staging_used + need <= bound)
			return true;
		if (fill_is_idle(f) && f->last_read_ns <= quiet_ns)
			fill_drop(c, f);
	}
	return c->staging_used + need <= bound;
}

/*
 * Memory for the item, within the bound. For a reader idle items are pushed
 * out, oldest first, and so are those that nobody is reading just now for what
 * is planned, which never has more than half of the bound and is never idle.
 * Anything else has half of the bound, and of what plans have of it, and pushes
 * out only what was served: what is fetched ahead of many readers must not be
 * pushed out by them before they come to it. -EAGAIN: not now; -ENOMEM.
 */
int fill_take_room(struct cache *c, struct fill *f)
{
	bool waited = f->prio == PRIO_DEMAND || !list_empty(&f->waiters);
	bool push = waited || !list_empty(&f->plans);
	uint64_t bound = c->config.staging_bytes;
	uint64_t need = f->item.size;
	uint64_t quiet_ns = UINT64_MAX;

	ASSERT_HELD(&c->lock);
	if (!waited && push)
		quiet_ns = clock_now_ns() - READING_NS;
	if (!push)
		bound = bound / 2 + c->planned / 2;
	if (!fill_make_room(c, &c->drained, need, bound, UINT64_MAX) &&
		(!push ||
			!fill_make_room(c, &c->staged, need, bound, quiet_ns)))
		return -EAGAIN;
	f->buf = malloc(need + part_tail_bytes(&f->item));
	if (!f->buf)
		return -ENOMEM;
	c->staging_used += need;
	if (c->staging_used > c->staging_peak)
		c->staging_peak = c->staging_used;
	if (f->ahead) {
		f->ahead = false;
		f->prefetched = true;
		COUNT(c->config.counters, prefetch_issued);
	}
	f->phase = FILL_FETCHING;
	fill_line_up(c, f);
	/* Free memory early, so that nothing has to be dropped when it is
	 * needed. */
	if (c->staging_used > bound / 4 * 3)
		part_spill(c, SPILL_AT_ONCE);
	return 0;
}

static void warms_answer(struct fill *f, int status, struct after *a)
{
	LIST_FOREACH(l, &f->warms)
		CONTAINER_OF(l, struct cache_warm, link)->status = status;
	list_splice_tail(&a->warms, &f->warms);
}

/* It will not be published: serve it from memory while there is room. */
void fill_stage(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	f->phase = FILL_STAGED;
	f->last_read_ns = clock_now_ns();
	if (list_empty(&f->age))
		fill_line_up(c, f);
	if (f->served == f->npages)
		fill_drained(c, f);
}

void fill_complete(struct cache *c, struct fill *f, struct after *a)
{
	ASSERT_HELD(&c->lock);
	close_file(c, f);
	sources_push(c, f, a);
	if (f->res.charged_bytes > 0) {
		f->phase = FILL_PUBLISHING;
		fill_line_up(c, f);
		fill_ref(f);
		list_add_tail(&a->fills, &f->publish);
		c->npublishing++;
		return;
	}
	COUNT(c->config.counters, passed_through);
	warms_answer(f, -ENOSPC, a);
	fill_stage(c, f);
}

/* Answer a parked read; it keeps a reference to the fill until then. */
static void read_answer(
	struct cache *c, struct fill *f, struct cache_read *r, struct after *a)
{
	list_del(&r->link);
	list_add_tail(&a->reads, &r->link);
	r->fill = f;
	fill_ref(f);
	c->parked--;
}

/* Answer the parked reads whose bytes have come. */
void fill_answer(struct cache *c, struct fill *f, struct after *a)
{
	ASSERT_HELD(&c->lock);
	LIST_FOREACH_SAFE(l, next, &f->waiters) {
		struct cache_read *r = CONTAINER_OF(l, struct cache_read, link);

		if (!fill_has(f, r->off, r->len))
			continue;
		r->status = (int)r->len;
		read_answer(c, f, r, a);
		fill_serve(c, f, r);
	}
}

/* Everybody who asked for this item hears that it will not come. */
static void answer_failed(
	struct cache *c, struct fill *f, int status, struct after *a)
{
	LIST_FOREACH_SAFE(l, next, &f->waiters) {
		struct cache_read *r = CONTAINER_OF(l, struct cache_read, link);

		r->status = status;
		read_answer(c, f, r, a);
	}
	warms_answer(f, status, a);
	planned_end(c, f, status);
}

/* Nothing more is fetched of it; what it has stays. */
void fill_halt(struct cache *c, struct fill *f, int status, struct after *a)
{
	ASSERT_HELD(&c->lock);
	answer_failed(c, f, status, a);
	for (unsigned i = 0; i < f->npages && f->wanted > 0; i++)
		if ((f->page[i] & PAGE_STATE_MASK) == PAGE_WANTED) {
			f->page[i] &= (uint8_t)~PAGE_STATE_MASK;
			f->wanted--;
		}
	list_del(&f->queue);
}

/* Report errors that readers get, except for the end of the mount and lack of
 * memory. */
static void report_failure(struct cache *c, const struct fill *f, int status)
{
	struct event e = {.path = f->path, .status = status};

	if (status == -ESTALE && !f->ceased)
		e.kind = EVENT_VERSION_REFUSED;
	else if (status != -ESTALE && status != -ENOTCONN &&
		status != -ENOMEM && !list_empty(&f->waiters))
		e.kind = EVENT_READ_FAILED;
	else
		return;
	event_report(c->config.events, &e);
}

/* The fetch failed. */
void fill_fail(struct cache *c, struct fill *f, int status, struct after *a)
{
	ASSERT_HELD(&c->lock);
	report_failure(c, f, status);
	answer_failed(c, f, status, a);
	if (status == -ESTALE && !a->stale && !f->ceased) {
		COUNT(c->config.counters, stale_reads);
		f->ceased = true;
		fill_ref(f);
		a->stale = f;
	}
	fill_leave_table(c, f);
}
