/* SPDX-License-Identifier: MIT */
/*
 * A keyed permutation of [0, n) and its inverse, with random access and
 * constant memory. For shuffling, not for secrets. The values are part of every
 * saved stream and never change.
 */
#ifndef SCHEDULE_PERMUTE_H
#define SCHEDULE_PERMUTE_H

#include <stdint.h>

#define PERMUTE_MAX ((uint64_t)1 << 63)

struct permute {
	uint64_t n, key;
	uint64_t high;	/* values of the upper part; the lower has 2^shift */
	unsigned shift; /* bits of the lower part */
	unsigned rounds;
};

/* Requires 1 <= n <= PERMUTE_MAX. Cheap enough to call for each look-up. */
void permute_init(struct permute *p, uint64_t n, uint64_t key);

/* The value to which i < n maps. */
uint64_t permute_at(const struct permute *p, uint64_t i);

/* The i that maps to `value` < n. */
uint64_t permute_find(const struct permute *p, uint64_t value);

#endif
