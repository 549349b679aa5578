/* SPDX-License-Identifier: MIT */
/*
 * The hash functions of the project: XXH3, 64 and 128 bits. The values are
 * written to disk (doc/formats.md) and never change.
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

/* Write the 32 hexadecimal digits of `h` without a NUL; returns their end. */
char *hash128_put(char *at, struct hash128 h);

/* XXH3-64 without seed over bytes added one piece after the other. */
struct hash_stream;

/* Returns NULL if memory is short. */
struct hash_stream *hash_stream_new(void);
void hash_stream_free(struct hash_stream *h); /* NULL is allowed */
void hash_stream_add(struct hash_stream *h, const void *data, size_t bytes);
/* The hash of the bytes added so far; more may be added. */
uint64_t hash_stream_value(const struct hash_stream *h);

#endif
