/* SPDX-License-Identifier: MIT */
/*
 * The rates at which a mount fetches for the plan of a loader: the mount's help
 * reports them, and the echo factor is chosen by them. Sums that only grow.
 */
#ifndef CORE_FETCH_RATES_H
#define CORE_FETCH_RATES_H

#include <stdint.h>

/* How fast a mount fetches for the loader's plan. */
struct fetch_rates {
	/* Time and bytes while the source is as busy as it may be. */
	uint64_t full_ns, full_bytes;
	uint64_t long_ns, long_bytes; /* of these, what it can do for ever */
	uint64_t bursts;	      /* how often it began */
	uint64_t looked; /* examples that it has looked for in its tiers */
	uint64_t missing_bytes; /* of these, to be fetched */
};

#endif
