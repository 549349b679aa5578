/* SPDX-License-Identifier: MIT */
/*
 * Requests, and how many of them are out at the origin. dispatch.c chooses and
 * begins them, fetch.c takes the answers, flight.c counts. Private to
 * src/cache.
 */
#ifndef CACHE_FLIGHT_IMPL_H
#define CACHE_FLIGHT_IMPL_H

#include "base/clock.h"
#include "base/source.h"
#include "base/timer.h"
#include "depth/depth.h"
#include "cache/fill_impl.h"
#include "origin/origin.h"

/* A request that takes longer does not count against the depth any more. */
#define FETCH_SLOW_NS NS_PER_S

/* Pages of one fill that a request asks for. */
struct fetch_span {
	struct fill *f;
	unsigned first, n;
	unsigned there; /* of n, lock */
};

/*
 * One request to the origin: of one fill, or of neighbours in a file. Or to
 * another source, then of one fill.
 */
struct fetch {
	struct origin_read r; /* what is asked for, whomever */
	struct source_read s; /* the same, not of the origin; .urgent: atomic */
	unsigned level;	      /* the source; origin_level(): the origin */
	bool late;	      /* given up, not on a list any more */
	struct cache *c;
	struct list
		link; /* in .inflight of the source, or of flight, or .slow */
	struct list start; /* in an after's list */
	size_t got;	   /* bytes; threads of who answers, in turn */
	bool slow;	   /* on flight.slow */
	bool surplus;	   /* nobody waits for it */
	bool ahead;	   /* the same, or its reader has a plan */
	uint64_t started_ns;
	unsigned nspans;
	struct fetch_span span[];
};

/* Requests to the origin. cache.lock; flight.c. */
struct cache_flight {
	struct list inflight; /* of struct fetch, oldest first */
	struct list slow;     /* out for longer than FETCH_SLOW_NS */
	unsigned ninflight;   /* on .inflight */
	unsigned nsurplus;    /* of these, nobody waits for */
	unsigned nahead;      /* of these, as in struct fetch */
	uint64_t bytes;	      /* of these, what they ask for */
	uint64_t bytes_max;   /* set once: the bound of that */
	struct depth depth;   /* how many of all there should be */
	unsigned nslow;
	unsigned nstarting;   /* of both lists, not given to the origin yet */
	struct timer timer;   /* looks for slow ones */
	size_t request_bytes; /* set once: of the origin, whole pages */
};

/* -- fetch.c -- */

bool fetch_of_origin(const struct fetch *x);
size_t fetch_span_bytes(const struct fetch_span *p);
/* The answer will be for the request's fills. */
void fetch_receive(struct fetch *x);

/* -- dispatch.c; assert the lock -- */

void dispatch_all(struct cache *c, struct after *a);
void dispatch_run(struct cache *c, struct list *link);

/* -- flight.c; all assert the lock but the first two -- */

void flight_init(struct cache *c);
size_t flight_request_bytes(struct cache *c);
const struct depth *flight_depth(struct cache *c);
/* The request is out from now on, and soon given to its source; or to the
 * origin, if it is of that. */
void flight_starting(struct cache *c);
void flight_add(struct fetch *x);
/* It has been given to its source. */
void flight_started(struct cache *c);
bool flight_is_starting(struct cache *c);
/* Add n requests like this one, or take them away. */
void flight_count(const struct fetch *x, int n);
/* The origin has answered. */
void flight_remove(struct fetch *x);
/* The same, for the depth. `more`: others are to go out that no reader waits
 * for. */
void flight_note(const struct fetch *x, uint64_t bytes, bool more);
/* May one more go out that a reader waits for, or one that nobody does? */
bool flight_takes_demand(struct cache *c);
bool flight_takes_surplus(struct cache *c);
/* Is there memory for requests of so many bytes more? */
bool flight_takes_bytes(struct cache *c, uint64_t bytes);
/* Is one out that nobody waits for? */
bool flight_has_surplus(struct cache *c);
void flight_set_slow_aside(struct cache *c);
/* Look again when the oldest has become slow. */
void flight_watch(struct cache *c);
unsigned flight_out(struct cache *c); /* slow ones, too */
void flight_abandon(struct cache *c); /* all that are out */
void flight_quiet(struct cache *c);   /* no timer is set any more */

#endif
