/* SPDX-License-Identifier: MIT */
/*
 * Shows what the cache is doing: its fills by phase, and the oldest fills and
 * requests in detail. For a person who looks for a cause. Called by any thread.
 */
#ifndef CACHE_VIEW_H
#define CACHE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct cache;

#define CACHE_VIEW_MAX 16u /* fills or requests that are shown */
#define CACHE_VIEW_PATH 256u
#define CACHE_VIEW_PHASES 6u

/* A fill that is doing something. */
struct fill_view {
	/* Path of its file; only the end of a longer one */
	char path[CACHE_VIEW_PATH];
	uint64_t base, size; /* where in the file */
	const char *phase, *priority;
	uint64_t age_ns;
	unsigned pages, present, wanted, inflight;
	unsigned waiters, warms, plans;
	uint64_t waits_ns; /* how long its oldest reader has waited */
	uint64_t wants_off, wants_len; /* what that reader reads, in the file */
	bool tier; /* it has room in a tier; otherwise it passes through */
};

/* A request to the origin, or to a provider beside it. */
struct request_view {
	char path[CACHE_VIEW_PATH];
	uint64_t off, len, got_bytes;
	uint64_t age_ns, quiet_ns; /* since its start, since bytes came */
	bool origin;
	/* It hangs or was given up, so it does not count against the depth. */
	bool slow;
};

struct cache_view {
	struct {
		const char *name;
		unsigned fills;
	} phase[CACHE_VIEW_PHASES];
	/* All, including those that are not shown */
	unsigned nfills, nrequests;
	unsigned nfill, nrequest; /* shown: the oldest, oldest first */
	struct fill_view fill[CACHE_VIEW_MAX];
	struct request_view request[CACHE_VIEW_MAX];
};

/*
 * Fill in the view. Holds the cache's lock while it looks at each fill and
 * request once and copies the oldest. `out` is large, so allocate it on the
 * heap.
 */
void cache_view(struct cache *c, struct cache_view *out);

#endif
