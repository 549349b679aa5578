/* SPDX-License-Identifier: MIT */
/* A keyed permutation of [0, n) and its inverse, with random access and
 * constant memory. For shuffling, not for secrets. Saved streams depend on the
 * values, so they never change. */
#ifndef SCHEDULE_PERMUTE_H
#define SCHEDULE_PERMUTE_H

#include <stdint.h>

#define PERMUTE_MAX ((uint64_t)1 << 63)

struct permute {
	uint64_t n, key;
	/* number of values of the upper part; the lower part has 2^shift */
	uint64_t high;
	unsigned shift; /* number of bits of the lower part */
	unsigned rounds;
};

/* Initialise a permutation; 1 <= n <= PERMUTE_MAX. Cheap enough to call for
 * each look-up. */
void permute_init(struct permute *p, uint64_t n, uint64_t key);

/* Returns the value to which i < n maps. */
uint64_t permute_at(const struct permute *p, uint64_t i);

/* Returns the i that maps to `value` < n. */
uint64_t permute_find(const struct permute *p, uint64_t value);

#endif
