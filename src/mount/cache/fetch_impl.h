/* SPDX-License-Identifier: MIT */
/*
 * Requests of the cache. dispatch.c chooses and starts them; fetch.c handles
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

/* The requests to the origin. Only dispatch.c uses the members. */
struct cache_requests {
	struct flight flight; /* guarded by the lock */
	struct timer timer;   /* fires when a request becomes slow */
	/* Set once: the best length of a request, a multiple of the page
	 * size */
	size_t bytes;
	/* Set once: number of pages that the origin prefers as a unit */
	unsigned unit_pages;
};

/* Pages of one fill that a request fetches. */
struct fetch_span {
	struct fill *f;
	unsigned first, n;
	/* Pages that have arrived, from the first on; guarded by the lock */
	unsigned there;
};

/* A request, either to the origin for one fill or for fills of neighbouring
 * items, or to another provider for one fill. */
struct fetch {
	uint32_t magic;
	/* The request to the origin. Requests to other providers use its range,
	 * too */
	struct origin_read r;
	/* The request to a provider other than the origin. .urgent is
	 * atomic. */
	struct provider_read s;
	unsigned level; /* level of the provider, or origin_level() */
	bool late;	/* the request was given up because it took too long */
	struct cache *c;
	/* While the request is in flight, .link is in a list of its struct
	 * cache_provider or, for the origin, of struct flight. */
	struct flight_request out;
	struct list start; /* in a list of struct after */
	/* Guarded by the lock: 1 until the answer, and 1 while abandon()
	 * runs */
	unsigned refs;
	/* Bytes that have arrived. Written by threads of the provider, one at a
	 * time. */
	size_t got;
	unsigned nspans;
	struct fetch_span span[];
};

/* The caller holds the lock. */
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
/* Have the origin read the bytes at once if it need not wait. Returns false if
 * the request must be started. The caller does not hold the lock. */
bool fetch_now(struct fetch *x, struct after *a);
/* Set the callbacks that put the answer of the request into its fills. */
void fetch_receive(struct fetch *x);

/* -- dispatch.c; all but _init() and _run() assert the lock -- */

void dispatch_init(struct cache *c);
void dispatch_all(struct cache *c, struct after *a);
struct fill *dispatch_run(struct cache *c, struct list *link, struct after *a);
/* Cancel the timer, because the cache is being stopped. */
void dispatch_quiet(struct cache *c);

#endif
