/* SPDX-License-Identifier: MIT */
/*
 * How many requests to keep at an origin when nobody waits for them: the
 * fewest that reach nearly the best rate that any number has reached. More
 * would only make readers wait behind them. No thread, no lock: the caller's.
 */
#ifndef CACHE_DEPTH_IMPL_H
#define CACHE_DEPTH_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#define DEPTH_LEVELS 9u /* 1, 2, 4, ... 256 */

/* One level: what came a second; 0: not known. */
struct depth_rate {
	double all, surplus; /* bytes: of readers as well; of surplus alone */
};

struct depth {
	unsigned most; /* set once */
	unsigned level;
	struct depth_rate rate[DEPTH_LEVELS];
	unsigned windows; /* since another level was last tried */
	unsigned rounds;  /* of that, since a lower one was */
	/* The window: it begins when those requests that were going when the
	 * level became this one have been answered. */
	unsigned skip;
	uint64_t begin_ns;
	uint64_t bytes, surplus_bytes;
	unsigned answers;  /* of surplus */
	uint64_t took_ns;  /* all of these together */
	uint64_t least_ns; /* the quickest so far; 0: not known */
};

/* `most`: no more than this are of use. */
void depth_init(struct depth *d, unsigned most);

/* Requests to keep going now. */
unsigned depth_limit(const struct depth *d);

/* Has it been found out how many that should be? */
bool depth_settled(const struct depth *d);

/* The minimum time of a request; 0: unknown. */
uint64_t depth_latency_ns(const struct depth *d);

/* A request was answered. */
struct depth_answer {
	uint64_t bytes;
	uint64_t took_ns;
	uint64_t now_ns;
	bool surplus; /* not a reader's */
	/* The surplus was at its limit, so the time depends on the origin and
	 * not on us. */
	bool busy;
};
void depth_note(struct depth *d, const struct depth_answer *a);

#endif
