/* SPDX-License-Identifier: MIT */
/*
 * Finds the number of requests to keep in flight at an origin while something
 * is fetched ahead of readers: the smallest number that reaches nearly the best
 * rate. More requests would only make readers wait behind them. Requests of
 * readers are included in that number. The caller does the locking.
 */
#ifndef CACHE_DEPTH_H
#define CACHE_DEPTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/cache/backlog.h"

#define DEPTH_LEVELS 9u /* 1, 2, 4, ... 256 */

struct depth {
	unsigned most; /* set once */
	unsigned level;
	/* Bytes per second at each level; 0: not known */
	double rate[DEPTH_LEVELS];
	/* Windows since other levels were last tried */
	unsigned windows;
	/* Tries since both neighbours were last tried */
	unsigned rounds;
	/* The last window differed from the level; perhaps a pause */
	bool odd;
	bool busy; /* readers keep more in flight than a lower level */
	/* The window of measurement. It begins when all requests that were in
	 * flight when the level changed have been answered. */
	unsigned skip;
	uint64_t begin_ns;
	uint64_t bytes;
	unsigned answers;
	uint64_t took_ns; /* sum of the requests' durations */
	/* Shortest duration of a request; 0: not known */
	uint64_t least_ns;
	_Atomic uint64_t recent_ns; /* shortest recent duration; relaxed */
};

/* `most`: the largest number of requests that is of use. */
void depth_init(struct depth *d, unsigned most);

/* Begin the search at this many requests. Call this before the first answer. */
void depth_begin(struct depth *d, unsigned requests);

/* The number of requests to keep in flight now. */
unsigned depth_limit(const struct depth *d);

/*
 * May one more request be sent for which no reader waits? `going` requests are
 * in flight. `ahead` of these fetch ahead, including those for which the plan's
 * own readers wait. If requests of other readers fill the depth, one request
 * ahead is still allowed.
 */
bool depth_allows(const struct depth *d, unsigned going, unsigned ahead);

/* Is the search for the best number complete? */
bool depth_settled(const struct depth *d);

/* The minimum of about the last hundred requests; needs no lock. */
uint64_t depth_recent_ns(const struct depth *d);

/* Note that a request was answered. */
struct depth_answer {
	uint64_t bytes;
	uint64_t took_ns;
	uint64_t now_ns;
	unsigned going; /* requests in flight, this one included */
	/* More was waiting to be fetched ahead, so only the origin limited the
	 * rate. */
	bool more;
};
void depth_note(struct depth *d, const struct depth_answer *a);

#endif
