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

/* Its 32 hexadecimal digits, without a NUL; returns their end. */
char *hash128_put(char *at, struct hash128 h);

/* XXH3-64, no seed, of bytes that come one after the other. */
struct hash_stream;

/* NULL: no memory. */
struct hash_stream *hash_stream_new(void);
void hash_stream_free(struct hash_stream *h); /* NULL is allowed */
void hash_stream_add(struct hash_stream *h, const void *data, size_t bytes);
/* Of what came until now; more may come. */
uint64_t hash_stream_value(const struct hash_stream *h);

#endif
