/* SPDX-License-Identifier: MIT */
/*
 * Finds the number of requests to keep in flight at an origin while bytes are
 * fetched ahead of readers: the smallest number that nearly reaches the best
 * rate. With more requests, readers would only wait longer. Requests of readers
 * are included in the number. The caller holds a lock.
 */
#ifndef CACHE_DEPTH_H
#define CACHE_DEPTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/cache/backlog.h"

#define DEPTH_LEVELS 9u /* levels are 1, 2, 4, ... 256 requests */

struct depth {
	unsigned most; /* set once: the largest useful number of requests */
	unsigned level;
	/* Bytes per second at each level; 0: not known */
	double rate[DEPTH_LEVELS];
	/* Windows since another level was last tried */
	unsigned windows;
	/* Number of times that other levels were tried since both neighbours
	 * were */
	unsigned rounds;
	/* The rate of the last window differed much from the earlier rate of
	 * this level. Perhaps the origin only paused */
	bool odd;
	/* Readers keep more requests in flight than the next lower level has */
	bool busy;
	/* The window of measurement. It begins after `skip` more answers, when
	 * all requests that were in flight at the change of the level have
	 * ended. */
	unsigned skip;
	uint64_t begin_ns;
	uint64_t bytes;
	unsigned answers;
	uint64_t took_ns; /* sum of the durations of the requests */
	/* Shortest duration of a request; 0: not known */
	uint64_t least_ns;
	/* Shortest duration of recent requests; relaxed */
	_Atomic uint64_t recent_ns;
};

/* `most` is the largest useful number of requests. */
void depth_init(struct depth *d, unsigned most);

/* Begin the search at this number of requests. Call this before the first
 * answer. */
void depth_begin(struct depth *d, unsigned requests);

/* Returns the number of requests to keep in flight now. */
unsigned depth_limit(const struct depth *d);

/* May one more request be sent for which no reader waits? `going` requests are
 * in flight. `ahead` of these are fetches ahead; a request counts as one even
 * if the reader of its plan waits for it. If `ahead` is 0, one request may be
 * sent even when requests of other readers use up the depth. */
bool depth_allows(const struct depth *d, unsigned going, unsigned ahead);

/* Has the search found the best number? */
bool depth_settled(const struct depth *d);

/* Returns the shortest duration of about the last hundred requests. Needs no
 * lock. */
uint64_t depth_recent_ns(const struct depth *d);

/* An answer of the origin, for depth_note(). */
struct depth_answer {
	uint64_t bytes;
	uint64_t took_ns;
	uint64_t now_ns;
	unsigned going; /* requests in flight, including this one */
	/* Further requests ahead were waiting to be sent, so only the origin
	 * limited the rate. */
	bool more;
};
void depth_note(struct depth *d, const struct depth_answer *a);

#endif
