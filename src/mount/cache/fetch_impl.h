/* SPDX-License-Identifier: MIT */
/*
 * Requests of the cache. dispatch.c chooses and starts them, fetch.c handles
 * the answers.
 */
#ifndef CACHE_FETCH_IMPL_H
#define CACHE_FETCH_IMPL_H

#include <stdlib.h>

#include "origin/provider.h"
#include "common/base/magic.h"
#include "common/base/timer.h"
#include "mount/cache/fill_impl.h"
#include "mount/cache/flight.h"
#include "origin/origin.h"

/* The requests to the origin. Belongs to dispatch.c. */
struct cache_requests {
	struct flight flight; /* lock */
	struct timer timer;   /* looks for slow requests */
	/* Set once: the best length of a request, in whole pages */
	size_t bytes;
	unsigned unit_pages; /* set once: the unit that the origin prefers */
};

/* Pages of one fill that a request asks for. */
struct fetch_span {
	struct fill *f;
	unsigned first, n;
	unsigned there; /* pages of `n` that have come; lock */
};

/*
 * One request: to the origin, for one fill or for neighbours in a file; or to
 * another provider, for one fill.
 */
struct fetch {
	uint32_t magic;
	struct origin_read r; /* the request, whichever provider it goes to */
	/* The same for a provider other than the origin; .urgent is atomic. */
	struct provider_read s;
	unsigned level; /* the provider; origin_level(): the origin */
	bool late;	/* it was given up, and is on no list any more */
	struct cache *c;
	/* .link is in .inflight of the provider, unless this is a request to
	 * the origin. */
	struct flight_request out;
	struct list start; /* in an after's list */
	unsigned refs; /* lock: until it is answered; while it is given up */
	/* Bytes that have come. Written by the provider's threads, one at a
	 * time. */
	size_t got;
	unsigned nspans;
	struct fetch_span span[];
};

/* Need the lock. */
static inline void fetch_put(struct fetch *x)
{
	if (--x->refs > 0)
		return;
	MAGIC_END(x);
	free(x);
}

/* -- fetch.c -- */

bool fetch_of_origin(const struct fetch *x);
size_t fetch_span_bytes(const struct fetch_span *p);
/* Prepare the request to receive its answer into its fills. */
void fetch_receive(struct fetch *x);

/* -- dispatch.c; all assert the lock, except _init() and _run() -- */

void dispatch_init(struct cache *c);
void dispatch_all(struct cache *c, struct after *a);
struct fill *dispatch_run(struct cache *c, struct list *link);
/* Set no timer any more. */
void dispatch_quiet(struct cache *c);

#endif
