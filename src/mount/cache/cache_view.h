/* SPDX-License-Identifier: MIT */
/*
 * Shows what the cache is doing: the number of fills in each phase, and the
 * oldest fills and requests in detail. It is for a person who looks for the
 * cause of a problem. Called by any thread.
 */
#ifndef CACHE_VIEW_H
#define CACHE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct cache;

/* Number of fills, and of requests, that are shown */
#define CACHE_VIEW_MAX 16u
#define CACHE_VIEW_PATH 256u
#define CACHE_VIEW_PHASES 6u

/* A fill that waits, is fetched, or moves to or from a tier. */
struct fill_view {
	/* Path of the file; only its end if it is longer */
	char path[CACHE_VIEW_PATH];
	uint64_t base, size; /* range in the file */
	const char *phase, *priority;
	uint64_t age_ns;
	unsigned pages, present, wanted, inflight;
	unsigned waiters, warms, plans;
	uint64_t waits_ns; /* time that the oldest reader has waited */
	/* Range of the file for which that reader waits */
	uint64_t wants_off, wants_len;
	/* A tier has space for the item. If false, no tier will get the item */
	bool tier;
};

/* A request to the origin or to another provider. */
struct request_view {
	char path[CACHE_VIEW_PATH];
	uint64_t off, len, got_bytes;
	/* Time since the start, time since the last bytes */
	uint64_t age_ns, quiet_ns;
	bool origin;
	/* The request hangs or was given up, so it does not count against the
	 * depth. */
	bool slow;
};

struct cache_view {
	struct {
		const char *name;
		unsigned fills;
	} phase[CACHE_VIEW_PHASES];
	/* Total numbers, including those that are not shown */
	unsigned nfills, nrequests;
	unsigned nfill, nrequest; /* number of elements below, oldest first */
	struct fill_view fill[CACHE_VIEW_MAX];
	struct request_view request[CACHE_VIEW_MAX];
};

/* Fill in the view. Holds the cache's lock while it looks once at each fill and
 * request and copies the oldest. `out` is large, so allocate it on the heap. */
void cache_view(struct cache *c, struct cache_view *out);

#endif
