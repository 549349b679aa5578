/* SPDX-License-Identifier: MIT */
/* The one includer of xxHash. Pure functions, callable from any thread. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash64(const void *data, size_t size_bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, size_bytes, seed);
}

struct hash128 hash128(const void *data, size_t size_bytes)
{
	XXH128_hash_t h = XXH3_128bits(data, size_bytes);

	return (struct hash128){.hi = h.high64, .lo = h.low64};
}
