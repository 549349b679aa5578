/* SPDX-License-Identifier: MIT */
/* The only file that includes xxHash. Pure functions, callable from any thread.
 * If the library can choose the vector width at run time, it does: the hashes
 * stay the same, but verifying an entry takes half the time
 * (bench/bench-store). */
#include "common/base/hash.h"

#include <xxhash.h>
#ifdef HAVE_XXH_X86DISPATCH_H
/* Use the widest vectors of the CPU. A static xxHash is often built without the
 * code for this choice; then these weak symbols are NULL, and the plain
 * functions are used. */
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#pragma weak XXH3_64bits_withSeed_dispatch
#pragma weak XXH3_128bits_dispatch
#pragma weak XXH3_64bits_update_dispatch
#define WIDEST(f) (f##_dispatch ? f##_dispatch : (f))
#else
#define WIDEST(f) (f)
#endif

uint64_t hash64(const void *data, size_t size_bytes, uint64_t seed)
{
	return WIDEST(XXH3_64bits_withSeed)(data, size_bytes, seed);
}

struct hash128 hash128(const void *data, size_t size_bytes)
{
	XXH128_hash_t h = WIDEST(XXH3_128bits)(data, size_bytes);

	return (struct hash128){.hi = h.high64, .lo = h.low64};
}

static XXH3_state_t *state_of(struct hash_stream *h)
{
	return (XXH3_state_t *)(void *)h;
}

static char *hash_put_hex(char *at, uint64_t value)
{
	static const char digits[] = "0123456789abcdef";

	for (int shift = 60; shift >= 0; shift -= 4)
		*at++ = digits[value >> shift & 15];
	return at;
}

char *hash128_put(char *at, struct hash128 h)
{
	return hash_put_hex(hash_put_hex(at, h.hi), h.lo);
}

struct hash_stream *hash_stream_new(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state)
		(void)XXH3_64bits_reset(state); /* can only fail for NULL */
	return (struct hash_stream *)(void *)state;
}

void hash_stream_free(struct hash_stream *h)
{
	(void)XXH3_freeState(state_of(h)); /* cannot fail */
}

void hash_stream_add(struct hash_stream *h, const void *data, size_t bytes)
{
	/* Can only fail for NULL. */
	(void)WIDEST(XXH3_64bits_update)(state_of(h), data, bytes);
}

uint64_t hash_stream_value(const struct hash_stream *h)
{
	return XXH3_64bits_digest((const XXH3_state_t *)(const void *)h);
}
