/* SPDX-License-Identifier: MIT */
/*
 * Counts the requests in flight at an origin, limits their number and their
 * bytes, and does not count requests that hang. Starts no thread; the caller
 * does the locking.
 */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <pthread.h>

#include "common/base/list.h"
#include "mount/cache/depth.h"

/* A request. It is embedded in a struct of its owner, who sets all members but
 * `alive_ns` and `slow` before flight_add(). */
struct flight_request {
	/* Free for the owner's use while the request is not in flight */
	struct list link;
	uint64_t started_ns;
	uint64_t alive_ns; /* when bytes of it came last, or started_ns */
	uint64_t bytes;	   /* bytes for which it asks */
	bool surplus;	   /* no reader waits for it */
	bool ahead;	   /* surplus, or for a reader with a plan */
	bool slow;	   /* on flight.slow; set by flight.c */
};

/* All private. Guarded by the caller's lock. */
struct flight {
	const pthread_mutex_t *lock; /* set once */
	unsigned useful;	     /* set once: the greatest useful depth */
	uint64_t bytes_max;	     /* set once: limit of `bytes` */
	struct list inflight; /* of struct flight_request, by .alive_ns */
	struct list slow;     /* without a byte for longer than SLOW_NS */
	unsigned ninflight;   /* on .inflight */
	unsigned nsurplus;    /* of these, surplus */
	/* Of these, `ahead` as in struct flight_request */
	unsigned nahead;
	/* Bytes for which the requests on .inflight ask */
	uint64_t bytes;
	unsigned nslow;
	struct depth depth; /* how many requests there should be */
};

struct flight_limits {
	unsigned useful; /* the greatest useful depth */
	unsigned first;	 /* where the search for the best one begins, or 0 */
	uint64_t bytes;	 /* limit of the bytes for which all requests ask */
};

/* Compute the limit of bytes in flight: 1 / `divisor` of the memory, but at
 * least one item, which would never be fetched otherwise. No limit if
 * `divisor` is 0. */
uint64_t flight_bytes(uint64_t memory_bytes, unsigned divisor,
	uint64_t file_max_bytes, uint64_t chunk_bytes);

void flight_init(struct flight *fl, const pthread_mutex_t *lock,
	const struct flight_limits *limits);
const struct depth *flight_depth(const struct flight *fl);

/* The functions below assert the lock. Note that the request is in flight from
 * now on. */
void flight_add(struct flight *fl, struct flight_request *q);
/* Note that bytes of the request have come, and more will: it does not hang. */
void flight_delivers(struct flight *fl, struct flight_request *q);
/* Note that the origin has answered. */
void flight_remove(struct flight *fl, struct flight_request *q);
/* Report the answer to the depth. `more`: there are still requests to send for
 * which no reader waits. */
void flight_note(struct flight *fl, const struct flight_request *q,
	uint64_t bytes, bool more);
/* Add n requests like this one, or take them away. */
void flight_count(struct flight *fl, const struct flight_request *q, int n);

/* May one more request be sent for which a reader waits (demand), or for which
 * none waits (surplus)? */
bool flight_takes_demand(const struct flight *fl);
bool flight_takes_surplus(const struct flight *fl);
/* Is there memory for requests of this many more bytes? */
bool flight_takes_bytes(const struct flight *fl, uint64_t bytes);
/* Is a request in flight that no reader waits for? */
bool flight_has_surplus(const struct flight *fl);
/* The number of requests in flight, slow ones included. */
unsigned flight_out(const struct flight *fl);

/* Stop counting requests that hang against the depth. */
void flight_set_slow_aside(struct flight *fl);
/* The time when the next request becomes slow; 0: there is none. */
uint64_t flight_slow_ns(const struct flight *fl);

/* Call each() for every request in flight. */
void flight_each(struct flight *fl,
	void (*each)(struct flight_request *q, void *arg), void *arg);

#endif
