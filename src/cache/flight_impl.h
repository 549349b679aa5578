/* SPDX-License-Identifier: MIT */
/*
 * Requests, and how many of them are in flight at the origin. dispatch.c
 * chooses and starts them, fetch.c handles the answers, flight.c counts them.
 * Private to src/cache.
 */
#ifndef CACHE_FLIGHT_IMPL_H
#define CACHE_FLIGHT_IMPL_H

#include "base/clock.h"
#include "base/source.h"
#include "base/timer.h"
#include "depth/depth.h"
#include "cache/fill_impl.h"
#include "origin/origin.h"

/* A request that takes longer no longer counts against the depth. */
#define FETCH_SLOW_NS NS_PER_S

/* Pages of one fill that a request asks for. */
struct fetch_span {
	struct fill *f;
	unsigned first, n;
	unsigned there; /* of n, lock */
};

/*
 * One request: to the origin, for one fill or for neighbours in a file; or to
 * another source, for one fill.
 */
struct fetch {
	struct origin_read r; /* the request, whichever source it goes to */
	struct source_read s; /* the same for a source other than the origin;
				 .urgent is atomic */
	unsigned level;	      /* the source; origin_level(): the origin */
	bool late;	      /* given up, not on a list any more */
	struct cache *c;
	struct list
		link; /* in .inflight of the source, or of flight, or .slow */
	struct list start; /* in an after's list */
	size_t got; /* bytes; written by the source's threads, one at a time */
	bool slow;  /* on flight.slow */
	bool surplus; /* nobody waits for it */
	bool ahead;   /* the same, or its reader has a plan */
	uint64_t started_ns;
	unsigned nspans;
	struct fetch_span span[];
};

/* Requests to the origin. Guarded by cache.lock; belongs to flight.c. */
struct cache_flight {
	struct list inflight; /* of struct fetch, oldest first */
	struct list slow;     /* out for longer than FETCH_SLOW_NS */
	unsigned ninflight;   /* on .inflight */
	unsigned nsurplus;    /* of these, nobody waits for */
	unsigned nahead;      /* of these, as in struct fetch */
	uint64_t bytes;	      /* that the requests on .inflight ask for */
	uint64_t bytes_max;   /* set once: limit of `bytes` */
	struct depth depth;   /* how many requests there should be */
	unsigned nslow;
	unsigned nstarting;   /* of both lists, not given to the origin yet */
	struct timer timer;   /* looks for slow ones */
	size_t request_bytes; /* set once: of the origin, whole pages */
};

/* -- fetch.c -- */

bool fetch_of_origin(const struct fetch *x);
size_t fetch_span_bytes(const struct fetch_span *p);
/* Prepare the request to receive its answer into its fills. */
void fetch_receive(struct fetch *x);

/* -- dispatch.c; assert the lock -- */

void dispatch_all(struct cache *c, struct after *a);
void dispatch_run(struct cache *c, struct list *link);

/* -- flight.c; all assert the lock but the first two -- */

void flight_init(struct cache *c);
size_t flight_request_bytes(struct cache *c);
const struct depth *flight_depth(struct cache *c);
/* The request counts as in flight from now on, and will soon be given to its
 * source. */
void flight_starting(struct cache *c);
void flight_add(struct fetch *x);
/* It has been given to its source. */
void flight_started(struct cache *c);
bool flight_is_starting(struct cache *c);
/* Add n requests like this one, or take them away. */
void flight_count(const struct fetch *x, int n);
/* The origin has answered. */
void flight_remove(struct fetch *x);
/* Report the answer to the depth. `more`: requests that no reader waits for are
 * still to be sent. */
void flight_note(const struct fetch *x, uint64_t bytes, bool more);
/* May one more request be sent that a reader waits for, or one that no reader
 * waits for? */
bool flight_takes_demand(struct cache *c);
bool flight_takes_surplus(struct cache *c);
/* Is there memory for requests of so many bytes more? */
bool flight_takes_bytes(struct cache *c, uint64_t bytes);
/* Is a request in flight that no reader waits for? */
bool flight_has_surplus(struct cache *c);
void flight_set_slow_aside(struct cache *c);
/* Set the timer for the time when the oldest request becomes slow. */
void flight_watch(struct cache *c);
unsigned flight_out(struct cache *c); /* slow ones, too */
void flight_abandon(struct cache *c); /* all that are out */
void flight_quiet(struct cache *c);   /* no timer is set any more */

#endif
