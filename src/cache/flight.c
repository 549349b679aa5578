/* SPDX-License-Identifier: MIT */
/*
 * Counts the requests in flight at the origin, limits their number, and sets
 * those that hang aside. Runs with the cache's lock held on any thread.
 */
#include "cache/cache_impl.h"

#include "base/clock.h"

/* Hung requests beyond this count against the depth again. */
#define SLOW_MAX 1024u

/* Readers may exceed the useful depth by this share of it. */
#define RESERVE_SHARE 3u

static void flight_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, flight.timer);
	struct after a;

	engine_enter(c, &a);
	engine_run(c, &a);
}

/* Whole pages, and one at least. */
static size_t whole_pages(size_t bytes)
{
	size_t pages = bytes / FILL_PAGE_BYTES;

	return (pages ? pages : 1) * FILL_PAGE_BYTES;
}

/* One item at least, or it would never be fetched. */
static uint64_t bytes_max(const struct cache_config *config, unsigned share)
{
	uint64_t item = config->limit_bytes > config->chunk_bytes
		? config->limit_bytes
		: config->chunk_bytes;
	uint64_t part = share ? config->staging_bytes / share : UINT64_MAX;

	return part > item ? part : item;
}

void flight_init(struct cache *c)
{
	const struct origin_traits *o = &cache_config(c)->origin->traits;
	struct cache_flight *fl = cache_flight(c);

	list_init(&fl->inflight);
	list_init(&fl->slow);
	depth_init(&fl->depth, o->depth);
	if (o->depth_first)
		depth_begin(&fl->depth, o->depth_first);
	fl->request_bytes = whole_pages(o->request_bytes);
	fl->bytes_max = bytes_max(cache_config(c), o->memory_share);
	fl->timer.fire = flight_fire;
}

size_t flight_request_bytes(struct cache *c)
{
	return cache_flight(c)->request_bytes;
}

const struct depth *flight_depth(struct cache *c)
{
	return &cache_flight(c)->depth;
}

/* -- Out and back ---------------------------------------------------------- */

void flight_starting(struct cache *c)
{
	ASSERT_INSIDE(c);
	cache_flight(c)->nstarting++;
}

void flight_started(struct cache *c)
{
	ASSERT_INSIDE(c);
	if (--cache_flight(c)->nstarting == 0 && engine_is_stopping(c))
		engine_wake(c);
}

bool flight_is_starting(struct cache *c)
{
	return cache_flight(c)->nstarting > 0;
}

void flight_count(const struct fetch *x, int n)
{
	struct cache_flight *fl = cache_flight(x->c);

	ASSERT_INSIDE(x->c);
	fl->ninflight += (unsigned)n;
	fl->nsurplus += x->surplus ? (unsigned)n : 0;
	fl->nahead += x->ahead ? (unsigned)n : 0;
	fl->bytes += (uint64_t)n * x->r.len;
}

void flight_add(struct fetch *x)
{
	list_add_tail(&cache_flight(x->c)->inflight, &x->link);
	flight_count(x, 1);
}

void flight_remove(struct fetch *x)
{
	ASSERT_INSIDE(x->c);
	list_del(&x->link);
	if (x->slow)
		cache_flight(x->c)->nslow--;
	else
		flight_count(x, -1);
}

void flight_note(const struct fetch *x, uint64_t bytes, bool more)
{
	struct cache_flight *fl = cache_flight(x->c);
	uint64_t now_ns = clock_now_ns();
	struct depth_answer a = {
		.bytes = bytes,
		.took_ns = now_ns - x->started_ns,
		.now_ns = now_ns,
		.going = fl->ninflight,
		.more = more || fl->nsurplus > 0,
	};

	ASSERT_INSIDE(x->c);
	depth_note(&fl->depth, &a);
}

/* -- How many -------------------------------------------------------------- */

bool flight_takes_demand(struct cache *c)
{
	unsigned useful = cache_config(c)->origin->traits.depth;

	return cache_flight(c)->ninflight < useful + useful / RESERVE_SHARE;
}

bool flight_takes_surplus(struct cache *c)
{
	const struct cache_flight *fl = cache_flight(c);

	return fl->ninflight < cache_config(c)->origin->traits.depth &&
		depth_allows(&fl->depth, fl->ninflight, fl->nahead);
}

bool flight_takes_bytes(struct cache *c, uint64_t bytes)
{
	const struct cache_flight *fl = cache_flight(c);

	return fl->bytes + bytes <= fl->bytes_max;
}

bool flight_has_surplus(struct cache *c)
{
	return cache_flight(c)->nsurplus > 0;
}

unsigned flight_out(struct cache *c)
{
	ASSERT_INSIDE(c);
	return cache_flight(c)->ninflight + cache_flight(c)->nslow;
}

/* -- Those that hang ------------------------------------------------------- */

static struct fetch *flight_oldest(struct cache_flight *fl)
{
	return list_empty(&fl->inflight)
		? NULL
		: CONTAINER_OF(fl->inflight.next, struct fetch, link);
}

/*
 * Requests that hang must not keep others from the origin: after a while they
 * do not count against the depth any more.
 */
void flight_set_slow_aside(struct cache *c)
{
	struct cache_flight *fl = cache_flight(c);
	uint64_t now_ns = clock_now_ns();
	struct fetch *x;

	ASSERT_INSIDE(c);
	while (fl->nslow < SLOW_MAX && (x = flight_oldest(fl))) {
		if (x->started_ns + FETCH_SLOW_NS > now_ns)
			return;
		list_del(&x->link);
		list_add_tail(&fl->slow, &x->link);
		x->slow = true;
		flight_count(x, -1);
		fl->nslow++;
	}
}

/* Any completion dispatches as well; this is for hung ones. */
void flight_watch(struct cache *c)
{
	struct cache_flight *fl = cache_flight(c);
	const struct fetch *x = flight_oldest(fl);

	ASSERT_INSIDE(c);
	if (x)
		(void)timer_set(cache_config(c)->timers, &fl->timer,
			x->started_ns + FETCH_SLOW_NS);
}

/* -- The end --------------------------------------------------------------- */

void flight_abandon(struct cache *c)
{
	struct cache_flight *fl = cache_flight(c);
	struct origin *o = cache_config(c)->origin;

	ASSERT_INSIDE(c);
	LIST_FOREACH(l, &fl->inflight)
		origin_read_abandon(o, &CONTAINER_OF(l, struct fetch, link)->r);
	LIST_FOREACH(l, &fl->slow)
		origin_read_abandon(o, &CONTAINER_OF(l, struct fetch, link)->r);
}

void flight_quiet(struct cache *c)
{
	(void)timer_cancel(cache_config(c)->timers, &cache_flight(c)->timer);
}
