/* SPDX-License-Identifier: MIT */
/*
 * The project's only way to a hash: XXH3, 64 and 128 bits. These values are
 * written to disk (doc/formats.md); they never change.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
	uint64_t hi, lo;
};

/* XXH3-64 of the bytes with a seed. */
uint64_t hash64(const void *data, size_t size_bytes, uint64_t seed);

/* XXH3-128 of the bytes, no seed. */
struct hash128 hash128(const void *data, size_t size_bytes);

#endif
