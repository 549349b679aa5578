/* SPDX-License-Identifier: MIT */
/*
 * The fields of an example while its servings are made. When the example is
 * decoded, the values of the fields that come from members are put into a
 * *block*: rows are parsed, and regions of masks decoded. The block lies behind
 * the decoded image or the sample, and is kept with it, so that echoes neither
 * parse nor decode. Then the values of each serving are mapped by its crop, to
 * the serving's place in the batch. Without fields, these functions do nothing.
 */
#ifndef ENGINE_MAKE_FIELDS_IMPL_H
#define ENGINE_MAKE_FIELDS_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/originals_impl.h"

/* The value of a field of an example; a block begins with one for each field.
 */
struct field_value {
	bool lacks;   /* the example lacks it, or it has no member */
	size_t at;    /* in the block */
	size_t bytes; /* there */
	size_t from;  /* used while the example is loaded */
	/* How many the example has: struct boxes, rows of points, int32_t or
	 * bytes, perhaps more than there are in the block */
	uint32_t rows;
	/* Masks: the size of an id (0: no mask), and the decoded region */
	uint32_t id_bytes;
	struct rect region;
	size_t stride_bytes;
};

/* The parser and decoder of the fields of one worker. */
struct field_maker;

/* Do the annotations have what the fields need? Returns 0, or -EINVAL with err
 * set. */
int fields_check(const struct engine_parts *parts, struct error *err);

/* Returns 0 or -ENOMEM. Without fields, *out is NULL, which all functions
 * allow. */
int field_maker_new(struct field_maker **out, const struct engine_parts *parts);
void field_maker_free(struct field_maker *f);
/* Returns the bytes of memory that it holds between calls. */
uint64_t field_maker_memory_bytes(const struct field_maker *f);
/* Free what it has come to hold. */
void field_maker_trim(struct field_maker *f);

/*
 * Parse the rows of an encoded original whose image was probed, check the
 * headers of its masks, and set the boxes of its picture. They are valid until
 * the next call. Needs no lock, like all functions below. Returns 0, or -errno
 * with err set if the example lacks a field or a member is damaged.
 */
int fields_load(struct field_maker *f, struct original *o, struct error *err);

/* Returns the bytes of the block of the loaded original, whose image is decoded
 * in this region. */
size_t fields_block_bytes(
	const struct field_maker *f, const struct rect *region);

/* The memory that decoding a mask of it takes, now and in a worker that holds
 * none. */
struct field_extra {
	uint64_t bytes, new_bytes;
};
struct field_extra fields_extra(const struct field_maker *f);

/* Returns the block behind `bytes` bytes of other data at `base`, or NULL if no
 * field has a member; and the size of both. */
uint8_t *fields_block(
	const struct engine_parts *parts, uint8_t *base, size_t bytes);
size_t fields_behind(size_t bytes, size_t block_bytes);

/* Make the block of the loaded original. Returns 0, or -errno with err set if a
 * member is damaged. */
int fields_fill(struct field_maker *f, const struct rect *region,
	uint8_t *block, struct error *err);

/* Returns the number of the field of boxes that crops follow, or FIELDS_MAX. */
unsigned fields_boxed(const struct settings *s);

/* Set the boxes of the picture to those of a block, or of the annotations. */
void fields_boxes(const struct engine_parts *parts, const struct original *o,
	const uint8_t *block, struct picture *pic);

/* Fill in the fields of a serving whose crop is known. Adds the number of rows
 * that had no room to *cut. Returns 0 or -errno. */
int fields_map(const struct engine_parts *parts, const struct serving *s,
	const uint8_t *block, uint64_t *cut);

/* Fill in the fields of a serving without an example: no rows, and masks of
 * `fill`. */
void fields_clear(const struct engine_parts *parts, const struct serving *s);

#endif
