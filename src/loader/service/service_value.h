/* SPDX-License-Identifier: MIT */
/*
 * The value of a sample in a store: a head, and the u8 pixels before cutout and
 * conversion. The bytes in a store are not trusted. Pure functions.
 */
#ifndef SERVICE_VALUE_H
#define SERVICE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_HEAD_BYTES 48u

/* The server deletes a sample after this time, unless somebody deletes it
 * before. */
#define SAMPLE_TTL_S 600

struct sample_value {
	uint64_t maker; /* id of the worker that made the sample */
	/* Size of the whole upright image, which determines the crop. 0: the
	 * example is not an image */
	uint32_t width, height;
	bool has_label; /* the label is part of the example's bytes */
	int64_t label;
	uint32_t bytes; /* number of bytes after the head */
};

/* Returns the seed of the checksums of all samples, which is derived from the
 * secret. */
uint64_t sample_seed(const void *secret, size_t secret_bytes);

/* Write the head of a value. The checksum covers the key, too, so that a value
 * under another key is not valid. */
void sample_seal(uint8_t head[SAMPLE_HEAD_BYTES], uint64_t seed,
	const char *key, const struct sample_value *v, const void *pixels);

/* Check a value and read its head. Returns the pixels, which are inside the
 * value; NULL if the value is incomplete or damaged, or belongs to another key.
 */
const uint8_t *sample_unseal(const void *value, size_t value_bytes,
	uint64_t seed, const char *key, struct sample_value *out);

#endif
