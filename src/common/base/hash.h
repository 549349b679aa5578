/* SPDX-License-Identifier: MIT */
/* The hash functions of the project: XXH3, 64 and 128 bits. The values are
 * written to disk (doc/formats.md), so the functions never change. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
	uint64_t hi, lo;
};

/* Returns the XXH3-64 of the bytes with a seed. */
uint64_t hash64(const void *data, size_t size_bytes, uint64_t seed);

/* Returns the XXH3-128 of the bytes, without a seed. */
struct hash128 hash128(const void *data, size_t size_bytes);

/* Write the 32 hexadecimal digits of `h` without a NUL. Returns the address
 * after the last digit. */
char *hash128_put(char *at, struct hash128 h);

/* Computes the XXH3-64, without a seed, of bytes that are added piece by piece.
 */
struct hash_stream;

/* Returns NULL if memory is short. */
struct hash_stream *hash_stream_new(void);
void hash_stream_free(struct hash_stream *h); /* NULL is allowed */
void hash_stream_add(struct hash_stream *h, const void *data, size_t bytes);
/* Returns the hash of all bytes added so far. More bytes may be added after
 * that. */
uint64_t hash_stream_value(const struct hash_stream *h);

#endif
