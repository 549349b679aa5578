/* SPDX-License-Identifier: MIT */
/*
 * The rates at which a mount fetches for the plan of a loader. The thread of
 * mount help reads them from the mount, and --echo auto chooses the factor by
 * them. All values are sums that only grow.
 */
#ifndef CORE_FETCH_RATES_H
#define CORE_FETCH_RATES_H

#include <stdint.h>

struct fetch_rates {
	/* Duration of all bursts in ns, and the bytes received in them. During
	 * a burst, at least as many requests wait as the source gets at a
	 * time. */
	uint64_t full_ns, full_bytes;
	/* The parts of full_ns and full_bytes at the rate that the source can
	 * sustain */
	uint64_t long_ns, long_bytes;
	/* The number of bursts */
	uint64_t bursts;
	/* Examples that the mount has looked up in its tiers */
	uint64_t looked;
	/* Bytes of these examples that were not in a tier and must be
	 * fetched */
	uint64_t missing_bytes;
};

#endif
