/* SPDX-License-Identifier: MIT */
/*
 * Chooses the next requests to the origin and to other providers, and limits
 * the number of requests in flight. Each provider has three queues; the one for
 * demand comes first. Within a queue fills take turns, so that many readers of
 * a slow origin all make progress; planned fills are fetched in the order of
 * the plans. Runs with the cache's lock held, on any thread. fetch.c handles
 * the answers.
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/trace.h"
#include "mount/cache/fill_part_impl.h"

/* Number of parts to write when memory for one more item is short. */
#define SPILL_AT_ONCE 2

/*
 * A planned item that is due later than PLANNED_SOON_NS, and later than a
 * multiple of the duration of a request, is fetched with one request at a time.
 * It still arrives in time, and another reader waits for at most one request of
 * the item. PLANNED_SOON_NS is long enough to fetch everything that is due
 * earlier at full depth.
 */
#define PLANNED_SOON_NS (NS_PER_S / 2)
#define PLANNED_SOON_LATENCIES 4u

struct dispatch {
	struct cache *c;
	struct after *after;
	bool surplus; /* no reader waits for the fills of the current queue */
	bool waiting; /* some requests could not be started */
	/* A request took pages of neighbouring fills, too, which may therefore
	 * have left the queue */
	bool merged;
	/* A fill waits for memory, which no other fill may take before it */
	bool no_room;
};

/* Is the fill due so late that one request at a time is enough? */
static bool is_early(struct cache *c, const struct fill *f)
{
	uint64_t soon_ns = flight_depth(cache_flight(c))->least_ns *
		PLANNED_SOON_LATENCIES;

	if (soon_ns < PLANNED_SOON_NS)
		soon_ns = PLANNED_SOON_NS;
	return list_empty(&f->waiters) &&
		planned_due_ns(c, &f->plans) >= clock_now_ns() + soon_ns &&
		!planned_at_once(c, &f->plans);
}

/* Returns the maximum length of the next request of the fill. */
static uint64_t next_bytes(struct cache *c, const struct fill *f)
{
	uint64_t bytes = f->wanted * FILL_PAGE_BYTES;

	if (bytes > f->item.size)
		bytes = f->item.size;
	return bytes < cache_request_bytes(c) ? bytes : cache_request_bytes(c);
}

/*
 * May another request of the fill be sent? Demand may exceed the depth a
 * little. Surplus is sent while the requests in flight are too few to reach the
 * best rate of the origin. Items that are due late are fetched with one request
 * at a time.
 */
static bool may_start(const struct dispatch *d, const struct fill *f)
{
	struct cache *c = d->c;

	if (f->level < origin_level(c))
		return provider_may_ask(c, f->level, d->surplus);
	if (!flight_takes_bytes(cache_flight(c), next_bytes(c, f)))
		return false;
	if (!d->surplus)
		return flight_takes_demand(cache_flight(c));
	return flight_takes_surplus(cache_flight(c)) &&
		(!flight_has_surplus(cache_flight(c)) || !is_early(c, f));
}

/* Find the next run of wanted pages from the cursor on, continuing at page 0
 * after the last page. */
static void next_run(struct fill *f, struct fetch_span *p, size_t max_bytes)
{
	unsigned max = (unsigned)(max_bytes / FILL_PAGE_BYTES);
	unsigned i = f->cursor;

	while (!fill_page_is_next(f, i))
		i = i + 1 < f->npages ? i + 1 : 0;
	p->f = f;
	p->first = i;
	while (i < f->npages && i - p->first < max && fill_page_is_next(f, i))
		i++;
	p->n = i - p->first;
	f->cursor = i < f->npages ? i : 0;
}

static size_t dispatch_request_bytes(const struct fetch *x)
{
	return fetch_of_origin(x) ? cache_request_bytes(x->c)
				  : provider_request_bytes(x->c, x->level);
}

/* Add the next run of wanted pages of the fill to the request. */
static void take_span(struct fetch *x, struct fill *f)
{
	struct fetch_span *p = &x->span[x->nspans++];

	next_run(f, p, dispatch_request_bytes(x) - x->r.len);
	fill_mark(f, p->first, p->n, PAGE_INFLIGHT);
	f->wanted -= p->n;
	fill_ref(f);
	x->r.len += fetch_span_bytes(p);
	x->out.bytes = x->r.len;
}

/*
 * Get memory for a waiting fill. If little memory is left after that, begin to
 * write parts to tiers, so that nothing has to be dropped later. Returns 0;
 * -EAGAIN if there is no memory now; or -EINPROGRESS if a tier has a part of
 * the fill, which is read first.
 */
static int dispatch_take_room(struct dispatch *d, struct fill *f)
{
	int rc = d->no_room ? -EAGAIN : fill_take_room(d->c, f);

	if (rc < 0)
		return rc;
	if (fill_leaves_little_room(d->c, f))
		part_spill(d->c, SPILL_AT_ONCE);
	return part_load(d->c, f) ? -EINPROGRESS : 0;
}

/*
 * Returns the fill of the next item of the file if the request can continue in
 * it, otherwise NULL. Conditions: its first page is wanted, it is at least as
 * urgent, all its wanted pages fit into the request, and memory is free for it.
 */
static struct fill *neighbour(
	struct dispatch *d, const struct fetch *x, const struct fill *f)
{
	struct cache_item item = f->item;
	struct fill *g;
	uint64_t bytes;

	item.base += item.size;
	if (f->whole || item.base >= item.version.size_bytes)
		return NULL;
	cache_item_at(d->c, item.base, &item);
	g = fill_find(d->c, cache_key(d->c, &item));
	if (!g || g->prio > f->prio || g->level != f->level ||
		!fill_page_is_next(g, 0))
		return NULL;
	bytes = x->r.len + next_bytes(d->c, g);
	if (bytes > cache_request_bytes(d->c) ||
		!flight_takes_bytes(cache_flight(d->c), bytes))
		return NULL;
	if (g->phase == FILL_WAITING && dispatch_take_room(d, g) < 0)
		return NULL;
	if (g->phase != FILL_FETCHING)
		return NULL;
	g->cursor = 0;
	return g;
}

static bool reaches_end(const struct fetch *x)
{
	const struct fetch_span *p = &x->span[x->nspans - 1];

	return p->first + p->n == p->f->npages;
}

/* Extend the request to neighbouring items, up to the best length. This is
 * useful because no further request can be sent now. */
static void merge(struct dispatch *d, struct fetch *x, struct fill *f)
{
	while (reaches_end(x) && (f = neighbour(d, x, f))) {
		take_span(x, f);
		fill_queue_again(d->c, f);
		d->merged = true;
	}
}

/* Is this the last request that can be sent now? */
static bool is_last(
	const struct dispatch *d, const struct fetch *x, const struct fill *f)
{
	bool more;

	flight_count(cache_flight(x->c), &x->out, 1);
	more = may_start(d, f);
	flight_count(cache_flight(x->c), &x->out, -1);
	return !more;
}

/* Create a request. Requests to the origin use a handle of the file. */
static struct fetch *fetch_new(struct cache *c, struct fill *f)
{
	size_t spans =
		2 + cache_request_bytes(c) / cache_config(c)->chunk_bytes;
	struct fetch *x =
		calloc(1, sizeof(*x) + spans * sizeof(struct fetch_span));
	bool origin = f->level == origin_level(c);

	if (x && !f->file && origin)
		f->file = origin_file_new(cache_config(c)->origin, f->path);
	if (!x || (!f->file && origin)) {
		free(x);
		return NULL;
	}
	MAGIC_BEGIN(x, fetch);
	x->c = c;
	x->refs = 1;
	x->level = f->level;
	x->out.started_ns = clock_now_ns();
	x->r.file = f->file;
	x->r.want = f->item.version;
	fetch_receive(x);
	return x;
}

static int fetch_start(struct dispatch *d, struct fill *f)
{
	struct cache *c = d->c;
	struct fetch *x = fetch_new(c, f);

	if (!x)
		return -ENOMEM;
	take_span(x, f);
	x->r.off = f->item.base + (uint64_t)x->span[0].first * FILL_PAGE_BYTES;
	jobs_add_start(c, d->after, &x->start);
	if (!fetch_of_origin(x)) {
		provider_ask(c, x);
		return 0;
	}
	x->out.surplus = f->prio != PRIO_DEMAND;
	x->out.ahead = x->out.surplus || f->tally != TALLY_FIRST;
	if (is_last(d, x, f))
		merge(d, x, f);
	flight_add(cache_flight(c), &x->out);
	return 0;
}

struct fill *dispatch_run(struct cache *c, struct list *link, struct after *a)
{
	struct fetch *x = CONTAINER_OF(link, struct fetch, start);

	if (!fetch_of_origin(x)) {
		provider_read(c, x);
		return NULL;
	}
	TRACE(request, x, x->r.off, x->r.len, x->span[0].f->path);
	if (a->reads_now && !x->out.surplus && fetch_now(x, a))
		return NULL;
	origin_read(cache_config(c)->origin, &x->r);
	return NULL;
}

/* Start one request of a fill. Returns false if the fill has to wait. */
static bool dispatch_fill(struct dispatch *d, struct fill *f)
{
	struct cache *c = d->c;
	int rc = 0;

	if (f->phase == FILL_MOVING)
		return false;
	if (!fill_wants_level(c, f)) {
		fill_queue_again(c, f);
		return true;
	}
	if (!f->buf)
		rc = dispatch_take_room(d, f);
	if (rc == -EINPROGRESS)
		return false;
	if (rc == -EAGAIN) {
		d->no_room = d->waiting = true;
		return false;
	}
	if (rc == 0)
		rc = fetch_start(d, f);
	if (rc < 0) {
		fill_fail(c, f, rc, d->after);
		return true;
	}
	if (f->wanted > 0 && f->prio == PRIO_PLANNED && fill_wants_level(c, f))
		return true;
	fill_queue_again(c, f);
	return true;
}

/* May a request be sent? If not, check again without counting requests that
 * hang. */
static bool may_start_now(struct dispatch *d, const struct fill *f)
{
	if (may_start(d, f))
		return true;
	if (f->level < origin_level(d->c))
		return false;
	flight_set_slow_aside(cache_flight(d->c));
	if (may_start(d, f))
		return true;
	d->waiting = true;
	return false;
}

/* Send the requests of this queue that the depth allows. If a fill waits for
 * memory, fills that have memory continue, because a fill that is complete
 * frees memory. */
static void dispatch_queue(struct dispatch *d, struct list *queue)
{
	bool progress = true;

	while (progress && !list_empty(queue)) {
		progress = d->merged = false;
		LIST_FOREACH_SAFE(l, next, queue) {
			struct fill *f = CONTAINER_OF(l, struct fill, queue);

			if (!may_start_now(d, f))
				return;
			progress |= dispatch_fill(d, f);
			if (d->merged)
				break; /* `next` may have left the queue */
		}
	}
}

/* Start requests for the first fill of the queue until it wants no more pages,
 * then for the next one. */
static void dispatch_in_order(struct dispatch *d, struct list *queue)
{
	while (!list_empty(queue)) {
		struct fill *f = LIST_FIRST(queue, struct fill, queue);

		if (!may_start_now(d, f) || !dispatch_fill(d, f))
			return;
	}
}

/* Set a timer for the time at which the next request counts as hanging, because
 * another request may be sent then. Answers need no timer: each of them starts
 * requests. */
static void watch_slow(struct cache *c)
{
	uint64_t slow_ns = flight_slow_ns(cache_flight(c));

	if (slow_ns)
		timer_set(cache_config(c)->timers, &c->requests.timer, slow_ns);
}

void dispatch_all(struct cache *c, struct after *a)
{
	struct dispatch d = {.c = c, .after = a};

	ASSERT_INSIDE(c);
	if (jobs_is_stopping(c))
		return;
	for (int prio = PRIO_DEMAND; prio < PRIO_COUNT; prio++) {
		d.surplus = prio != PRIO_DEMAND;
		for (unsigned i = 0; i <= origin_level(c); i++)
			if (prio == PRIO_PLANNED)
				dispatch_in_order(&d, fill_queue(c, i, prio));
			else
				dispatch_queue(&d, fill_queue(c, i, prio));
	}
	if (d.waiting)
		watch_slow(c);
}

/* -- Life ------------------------------------------------------------------ */

static void slow_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, requests.timer);
	struct after a;

	jobs_enter(c, &a);
	jobs_run(c, &a);
}

void dispatch_init(struct cache *c)
{
	const struct cache_config *cfg = cache_config(c);
	const struct origin_traits *o = origin_traits(cfg->origin);
	struct cache_requests *r = &c->requests;
	size_t pages = o->request_bytes / FILL_PAGE_BYTES;
	unsigned unit = cache_unit_pages(c, false);
	struct flight_limits limits = {
		.useful = o->depth,
		.first = o->depth_first,
		.bytes = flight_bytes(cfg->staging_bytes, o->memory_share,
			cfg->limit_bytes, cfg->chunk_bytes),
	};

	if (cfg->inflight_bytes > 0 && cfg->inflight_bytes < limits.bytes)
		limits.bytes = cfg->inflight_bytes;
	flight_init(&r->flight, CACHE_LOCK(c), &limits);
	r->bytes = (pages ? pages : 1) * FILL_PAGE_BYTES;
	r->unit_pages = o->asks_whole && pages > unit
		? (unsigned)pages / unit * unit
		: unit;
	timer_init(&r->timer, slow_fire);
}

void dispatch_quiet(struct cache *c)
{
	ASSERT_INSIDE(c);
	(void)timer_cancel(cache_config(c)->timers, &c->requests.timer);
}
