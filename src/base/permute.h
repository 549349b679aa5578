/* SPDX-License-Identifier: MIT */
/*
 * A keyed permutation of [0, n): random access, no memory that grows with n,
 * with its inverse. For shuffling, not for secrets. The values are part of
 * every stream that was ever saved: they never change.
 */
#ifndef BASE_PERMUTE_H
#define BASE_PERMUTE_H

#include <stdint.h>

#define PERMUTE_MAX ((uint64_t)1 << 63)

struct permute {
	uint64_t n, key;
	uint64_t high;	/* values of the upper part; the lower has 2^shift */
	unsigned shift; /* bits of the lower part */
	unsigned rounds;
};

/* 1 <= n <= PERMUTE_MAX. Cheap enough to be done for each look-up. */
void permute_init(struct permute *p, uint64_t n, uint64_t key);

/* Where i < n goes. */
uint64_t permute_at(const struct permute *p, uint64_t i);

/* Which i goes to value < n. */
uint64_t permute_find(const struct permute *p, uint64_t value);

#endif
