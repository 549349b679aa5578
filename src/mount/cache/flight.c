/* SPDX-License-Identifier: MIT */
/* Requests in flight at an origin; see flight.h. */
#include "mount/cache/flight.h"

#include "common/base/clock.h"
#include "common/base/lock.h"

/* A request that received no byte for this time counts as hanging, and does not
 * count against the limits. */
#define SLOW_NS NS_PER_S

/* If more requests than this hang, the further ones count against the depth
 * again. */
#define SLOW_MAX 1024u

/* Readers may exceed the useful depth by 1 / RESERVE_DIVISOR. */
#define RESERVE_DIVISOR 3u

uint64_t flight_bytes(uint64_t memory_bytes, unsigned divisor,
	uint64_t file_max_bytes, uint64_t chunk_bytes)
{
	uint64_t item =
		file_max_bytes > chunk_bytes ? file_max_bytes : chunk_bytes;
	uint64_t part = divisor ? memory_bytes / divisor : UINT64_MAX;

	return part > item ? part : item;
}

void flight_init(struct flight *fl, const pthread_mutex_t *lock,
	const struct flight_limits *limits)
{
	fl->lock = lock;
	fl->useful = limits->useful;
	fl->bytes_max = limits->bytes;
	list_init(&fl->inflight);
	list_init(&fl->slow);
	depth_init(&fl->depth, limits->useful);
	if (limits->first)
		depth_begin(&fl->depth, limits->first);
}

const struct depth *flight_depth(const struct flight *fl)
{
	return &fl->depth;
}

/* -- Start and end of a request -------------------------------------------- */

void flight_count(struct flight *fl, const struct flight_request *q, int n)
{
	ASSERT_HELD(fl->lock);
	fl->ninflight += (unsigned)n;
	fl->nsurplus += q->surplus ? (unsigned)n : 0;
	fl->nahead += q->ahead ? (unsigned)n : 0;
	fl->bytes += (uint64_t)n * q->bytes;
}

void flight_add(struct flight *fl, struct flight_request *q)
{
	ASSERT_HELD(fl->lock);
	q->alive_ns = q->started_ns;
	list_add_tail(&fl->inflight, &q->link);
	flight_count(fl, q, 1);
}

void flight_delivers(struct flight *fl, struct flight_request *q)
{
	ASSERT_HELD(fl->lock);
	q->alive_ns = clock_now_ns();
	list_del(&q->link);
	list_add_tail(&fl->inflight, &q->link);
	if (!q->slow)
		return;
	q->slow = false;
	fl->nslow--;
	flight_count(fl, q, 1);
}

void flight_remove(struct flight *fl, struct flight_request *q)
{
	ASSERT_HELD(fl->lock);
	list_del(&q->link);
	if (q->slow)
		fl->nslow--;
	else
		flight_count(fl, q, -1);
}

void flight_note(struct flight *fl, const struct flight_request *q,
	uint64_t bytes, bool more)
{
	uint64_t now_ns = clock_now_ns();
	struct depth_answer a = {
		.bytes = bytes,
		.took_ns = now_ns - q->started_ns,
		.now_ns = now_ns,
		.going = fl->ninflight,
		.more = more || fl->nsurplus > 0,
	};

	ASSERT_HELD(fl->lock);
	depth_note(&fl->depth, &a);
}

/* -- Limits ---------------------------------------------------------------- */

bool flight_takes_demand(const struct flight *fl)
{
	ASSERT_HELD(fl->lock);
	return fl->ninflight < fl->useful + fl->useful / RESERVE_DIVISOR;
}

bool flight_takes_surplus(const struct flight *fl)
{
	ASSERT_HELD(fl->lock);
	return fl->ninflight < fl->useful &&
		depth_allows(&fl->depth, fl->ninflight, fl->nahead);
}

bool flight_takes_bytes(const struct flight *fl, uint64_t bytes)
{
	ASSERT_HELD(fl->lock);
	return fl->bytes + bytes <= fl->bytes_max;
}

bool flight_has_surplus(const struct flight *fl)
{
	ASSERT_HELD(fl->lock);
	return fl->nsurplus > 0;
}

unsigned flight_out(const struct flight *fl)
{
	ASSERT_HELD(fl->lock);
	return fl->ninflight + fl->nslow;
}

/* -- Requests that hang ---------------------------------------------------- */

/* Returns the request that got no byte for the longest time. */
static struct flight_request *flight_oldest(const struct flight *fl)
{
	ASSERT_HELD(fl->lock);
	return list_empty(&fl->inflight)
		? NULL
		: LIST_FIRST(&fl->inflight, struct flight_request, link);
}

void flight_set_slow_aside(struct flight *fl)
{
	uint64_t now_ns = clock_now_ns();
	struct flight_request *q;

	while (fl->nslow < SLOW_MAX && (q = flight_oldest(fl))) {
		if (q->alive_ns + SLOW_NS > now_ns)
			return;
		list_del(&q->link);
		list_add_tail(&fl->slow, &q->link);
		q->slow = true;
		flight_count(fl, q, -1);
		fl->nslow++;
	}
}

uint64_t flight_slow_ns(const struct flight *fl)
{
	const struct flight_request *q = flight_oldest(fl);

	return q ? q->alive_ns + SLOW_NS : 0;
}

void flight_each(struct flight *fl,
	void (*each)(struct flight_request *q, void *arg), void *arg)
{
	ASSERT_HELD(fl->lock);
	LIST_FOREACH(l, &fl->inflight)
		each(CONTAINER_OF(l, struct flight_request, link), arg);
	LIST_FOREACH(l, &fl->slow)
		each(CONTAINER_OF(l, struct flight_request, link), arg);
}
