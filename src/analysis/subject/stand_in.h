/* SPDX-License-Identifier: MIT */
/* Images that a mount under analysis serves in place of others: a tiny one, so
 * that preparation costs nearly nothing; and cached ones of similar size, so
 * that a dataset may be larger than the cache. Both are padded with zeros,
 * which decoders of JPEG ignore. */
#ifndef SUBJECT_STAND_IN_H
#define SUBJECT_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* Files of at most this size are not replaced by a tiny image. */
#define STAND_IN_TINY_BYTES ((size_t)305)

/* Write bytes [off, off + len) of a tiny image that is padded to any length. */
void stand_in_tiny(uint64_t off, size_t len, void *buf);

/* Does the name of a file say that it is an image? */
bool stand_in_is_image(const char *path);

/* The maximum number of images in the table; they are chosen at random. */
#define STAND_INS_MAX 4096

struct stand_in {
	struct hash128 key; /* key of its entry in a tier */
	uint64_t size_bytes;
};

/*
 * A table of images. One thread adds images and then sorts it; any number of
 * threads may search it after that.
 */
struct stand_ins;

struct stand_ins *stand_ins_new(void); /* NULL if memory is short */
void stand_ins_free(struct stand_ins *s);
void stand_ins_add(
	struct stand_ins *s, struct hash128 key, uint64_t size_bytes);
void stand_ins_sort(struct stand_ins *s);

/* Returns the number of images that were added. */
uint64_t stand_ins_count(const struct stand_ins *s);

/*
 * Find one of the largest images of at most size_bytes; `choice` selects it.
 * Returns false if all images are larger.
 */
bool stand_ins_find(const struct stand_ins *s, uint64_t size_bytes,
	uint64_t choice, struct stand_in *out);

#endif
