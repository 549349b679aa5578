/* SPDX-License-Identifier: MIT */
/*
 * Counts the requests in flight at an origin, and limits their number and their
 * bytes. A request that hangs does not count. Starts no thread; the caller
 * holds a lock.
 */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <pthread.h>

#include "common/base/list.h"
#include "mount/cache/depth.h"

/* A request, embedded in a struct of its owner. Before flight_add(), the owner
 * sets all members except `alive_ns` and `slow`. */
struct flight_request {
	/* While the request is not in flight, the owner may use the link */
	struct list link;
	uint64_t started_ns;
	uint64_t alive_ns; /* time of the last bytes, or started_ns */
	uint64_t bytes;	   /* length of the request */
	bool surplus;	   /* no reader waits for it */
	/* A fetch ahead: no reader waits for it, or a reader with a plan does
	 */
	bool ahead;
	bool slow; /* it hangs and is in flight.slow; set by flight.c */
};

/* Only flight.c uses the members. The caller's lock guards them. */
struct flight {
	const pthread_mutex_t *lock; /* set once */
	/* Set once: the largest useful number of requests */
	unsigned useful;
	uint64_t bytes_max; /* set once: maximum of `bytes` */
	/* Requests in the order of alive_ns: struct flight_request */
	struct list inflight;
	struct list slow;   /* requests that received no byte for SLOW_NS */
	unsigned ninflight; /* number of requests in `inflight` */
	unsigned nsurplus;  /* number of these that are `surplus` */
	/* Number of these that are `ahead` */
	unsigned nahead;
	/* Sum of .bytes of the requests in `inflight` */
	uint64_t bytes;
	unsigned nslow;
	struct depth depth; /* finds the number of requests to keep in flight */
};

struct flight_limits {
	unsigned useful; /* the largest useful number of requests */
	/* Number of requests at which the search for the best number begins; 0:
	 * the default */
	unsigned first;
	/* Limit for the bytes that all requests ask for together */
	uint64_t bytes;
};

/* Compute the limit for bytes in flight: 1 / `divisor` of the memory, but at
 * least the size of one item, because otherwise the largest items could never
 * be fetched. A `divisor` of 0 means that there is no limit. */
uint64_t flight_bytes(uint64_t memory_bytes, unsigned divisor,
	uint64_t file_max_bytes, uint64_t chunk_bytes);

void flight_init(struct flight *fl, const pthread_mutex_t *lock,
	const struct flight_limits *limits);
const struct depth *flight_depth(const struct flight *fl);

/* The functions below assert the lock. Note that the request is in flight from
 * now on. */
void flight_add(struct flight *fl, struct flight_request *q);
/* Note that bytes of the request have arrived and more will follow, so the
 * request does not hang. */
void flight_delivers(struct flight *fl, struct flight_request *q);
/* Note that the origin has answered the request. */
void flight_remove(struct flight *fl, struct flight_request *q);
/* Report an answer to flight.depth. `more`: further requests for which no
 * reader waits are waiting to be sent. */
void flight_note(struct flight *fl, const struct flight_request *q,
	uint64_t bytes, bool more);
/* Add n to the number of requests like this one; n may be negative. */
void flight_count(struct flight *fl, const struct flight_request *q, int n);

/* May one more request be sent? flight_takes_demand(): a reader waits for it.
 * flight_takes_surplus(): no reader waits for it. */
bool flight_takes_demand(const struct flight *fl);
bool flight_takes_surplus(const struct flight *fl);
/* May requests ask for this many more bytes? */
bool flight_takes_bytes(const struct flight *fl, uint64_t bytes);
/* Is a request in flight for which no reader waits? */
bool flight_has_surplus(const struct flight *fl);
/* Returns the number of requests in flight, including slow ones. */
unsigned flight_out(const struct flight *fl);

/* Stop counting requests that received no byte for SLOW_NS. */
void flight_set_slow_aside(struct flight *fl);
/* Returns the time at which the next request becomes slow; 0: there is none. */
uint64_t flight_slow_ns(const struct flight *fl);

/* Call each() for every request in flight. */
void flight_each(struct flight *fl,
	void (*each)(struct flight_request *q, void *arg), void *arg);

#endif
