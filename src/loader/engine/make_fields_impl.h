/* SPDX-License-Identifier: MIT */
/*
 * Makes the fields of an example. When an example is decoded, the values of
 * those fields that have a member are stored in a block*: rows are parsed, and
 * regions of masks are decoded. The block is in memory behind the decoded image
 * or the sample, and is kept with it, so echoes need neither parse nor decode.
 * For each serving, its crop maps the values to the serving's place in the
 * batch. If the configuration has no fields, these functions do nothing.
 */
#ifndef ENGINE_MAKE_FIELDS_IMPL_H
#define ENGINE_MAKE_FIELDS_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/originals_impl.h"

/* The value of a field of an example. A block begins with one of these for each
 * field. */
struct field_value {
	/* the field has no value, because the example or the field has no
	 * member */
	bool lacks;
	size_t at;    /* offset of the value in the block */
	size_t bytes; /* size of the value in the block */
	/* offset in the maker's array; used while the example is loaded */
	size_t from;
	/* Number of boxes, of rows of points, of numbers or of bytes that the
	 * example has. The block may have fewer. */
	uint32_t rows;
	/* Masks: bytes of an id (0: there is no mask), and the decoded region
	 */
	uint32_t id_bytes;
	struct rect region;
	size_t stride_bytes;
};

/* Parses and decodes the fields for one worker. */
struct field_maker;

/* Check that the annotations have what the fields need. Returns 0, or -EINVAL
 * with err set. */
int fields_check(const struct engine_parts *parts, struct error *err);

/* Create a maker. Returns 0 or -ENOMEM. If there are no fields, *out is NULL,
 * which all functions allow. */
int field_maker_new(struct field_maker **out, const struct engine_parts *parts);
void field_maker_free(struct field_maker *f);
/* Returns the bytes of memory that the maker holds between calls. */
uint64_t field_maker_memory_bytes(const struct field_maker *f);
/* Free the memory that the maker has allocated for its work. */
void field_maker_trim(struct field_maker *f);

/*
 * Parse the rows of an encoded original, check the headers of its masks, and
 * set the boxes of its picture, which are valid until fields_done(). If the
 * image's header is not known, call fields_sized() after the decode. Needs no
 * lock, like all functions below. Returns 0; or -errno with err set if the
 * example has no member for a field, or if a member or the entry of the
 * annotations is damaged.
 */
int fields_load(struct field_maker *f, struct original *o, struct error *err);

/* Tell the size of an image that decode() has decoded. Without fields, or if
 * the header of the image was known, this does nothing. Otherwise it does what
 * fields_load() could not do, and returns as that does. */
int fields_sized(struct field_maker *f, struct original *o, uint32_t width,
	uint32_t height, struct error *err);

/* Returns the size of the block of the loaded original, if its image is decoded
 * in this region. If the region has no pixels, masks are decoded as a whole. */
size_t fields_block_bytes(
	const struct field_maker *f, const struct rect *region);

/* The memory that the loaded original takes in this maker in addition to what
 * the maker held before, and in a new maker: for decoding a mask, and for rows
 * and numbers. */
struct field_extra {
	uint64_t bytes, new_bytes;
	uint64_t rows_bytes, new_rows_bytes;
};
struct field_extra fields_extra(const struct field_maker *f);

/* Call this when the original is made, has failed, or waits for memory. If its
 * rows take much memory, this frees it, so that idle workers hold little. */
void fields_done(struct field_maker *f);

/* fields_block() returns the block, which is behind `bytes` bytes of other data
 * at `base`; NULL if no field has a member. fields_behind() returns the size of
 * data and block. */
uint8_t *fields_block(
	const struct engine_parts *parts, uint8_t *base, size_t bytes);
size_t fields_behind(size_t bytes, size_t block_bytes);

/* Fill in the block of the loaded original. Returns 0, or -errno with err set
 * if a member is damaged. */
int fields_fill(struct field_maker *f, const struct rect *region,
	uint8_t *block, struct error *err);

/* Returns the number of the field whose boxes crops depend on, or FIELDS_MAX.
 */
unsigned fields_boxed(const struct settings *s);

/* Set the boxes of the picture: those of a block, or those of the annotations.
 */
void fields_boxes(const struct engine_parts *parts, const struct original *o,
	const uint8_t *block, struct picture *pic);

/* Fill in the fields of a serving whose crop was chosen. Adds to *cut the
 * number of rows for which there was no room. Returns 0 or -errno. */
int fields_map(const struct engine_parts *parts, const struct serving *s,
	const uint8_t *block, uint64_t *cut);

/* Fill in the fields of a serving that has no example: no rows, and masks with
 * the id `fill` in each pixel. */
void fields_clear(const struct engine_parts *parts, const struct serving *s);

/* Returns the part whose size is the length of an example, for buckets. */
uint32_t fields_length_part(const struct settings *s);

#endif
