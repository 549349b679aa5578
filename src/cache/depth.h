/* SPDX-License-Identifier: MIT */
/*
 * How many requests to keep at an origin when nobody waits for them: the
 * fewest that reach 95 % of the best rate that any number has reached. More
 * would only make readers wait behind them. No thread, no lock: the caller's.
 */
#ifndef CACHE_DEPTH_H
#define CACHE_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#define DEPTH_LEVELS 6u /* 1, 2, 4, ... 32 */

struct depth {
	unsigned level;
	double rate[DEPTH_LEVELS]; /* bytes a second; 0: not known */
	uint64_t begin_ns;	   /* of the window; 0: none */
	uint64_t bytes;		   /* in the window */
	unsigned answers;	   /* in the window */
	unsigned windows;	   /* since another level was last tried */
};

void depth_init(struct depth *d);

/* Requests to keep going now. */
unsigned depth_limit(const struct depth *d);

/*
 * A request, of surplus or of a reader, was answered with so many bytes.
 * `busy`: as many of surplus were going as the limit allows, so the time tells
 * about the origin and not about us.
 */
void depth_note(struct depth *d, uint64_t bytes, bool busy, uint64_t now_ns);

#endif
