/* SPDX-License-Identifier: MIT */
/*
 * How fast a mount fetches for the plan of a loader: the mount's help reports
 * it, and the echo factor is chosen by it. All values are sums that only grow.
 */
#ifndef CORE_FETCH_RATES_H
#define CORE_FETCH_RATES_H

#include <stdint.h>

/* How fast a mount fetches for the loader's plan. */
struct fetch_rates {
	/* Time and bytes while the source is as busy as it may be. */
	uint64_t full_ns, full_bytes;
	/* The part of full_ns and full_bytes at the speed that the source can
	 * sustain */
	uint64_t long_ns, long_bytes;
	/* How often the source became as busy as it may be */
	uint64_t bursts;
	/* Examples that the mount has looked for in its tiers */
	uint64_t looked;
	/* Bytes of the looked-up examples that must be fetched */
	uint64_t missing_bytes;
};

#endif
