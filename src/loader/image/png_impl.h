/* SPDX-License-Identifier: MIT */
/* The functions of the PNG decoder's files. This code parses and checks the
 * chunks. libspng gets only IHDR, PLTE, IDAT and IEND, so that its parsers for
 * text and profiles never see a byte. libspng returns rows of samples as they
 * are stored in the file. */
#ifndef IMAGE_PNG_IMPL_H
#define IMAGE_PNG_IMPL_H

#include "loader/image/decode.h"

/* A PNG decoder belongs to a decoder, and therefore to one thread. */
struct png;

/* Do the bytes begin with the signature of a PNG? They may be too short. */
bool png_is(const void *data, size_t bytes);

/* Like decode_probe() and decode_region(). png_probe() creates *p for the first
 * PNG of a decoder; it returns -ELIBACC if libspng cannot be loaded. */
int png_probe(struct png **p, const struct decode_limits *limits,
	const void *data, size_t bytes, struct image_info *info,
	struct error *err);
int png_region(struct png *p, const void *data, size_t bytes,
	const struct image_info *info, const struct image *out,
	struct error *err);

/* Like decode_ids(). */
int png_ids(struct png *p, const void *data, size_t bytes,
	const struct image_info *info, const struct image *out,
	struct error *err);

void png_free(struct png *p); /* NULL is allowed */
size_t png_memory_bytes(const struct png *p);

/* -- png_header.c ---------------------------------------------------------- */

enum png_color {
	PNG_GREY = 0,
	PNG_RGB = 2,
	PNG_PALETTE = 3,
	PNG_GREY_ALPHA = 4,
	PNG_RGB_ALPHA = 6,
};

#define PNG_SIGNATURE_BYTES ((size_t)8)
#define PNG_PASSES 7

/* What the chunks of a file say, after they were checked. */
struct png_header {
	uint32_t width, height; /* size of the stored image in pixels */
	uint8_t depth, color;
	bool interlaced;
	uint8_t orientation; /* 1 to 8 */
	uint8_t palette[256][3];
	uint64_t idat_bytes;
};

struct png_chunk {
	/* The length field; contents begin 8 bytes later */
	const uint8_t *start;
	uint32_t bytes; /* length of the contents */
	uint32_t type;
};

#define PNG_TYPE(a, b, c, d)                                                   \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 |      \
		(uint32_t)(d))

/* Tables for png_crc(). */
struct png_crcs {
	uint32_t of[8][256];
};

void png_crcs_init(struct png_crcs *t);

/* Read the chunk at *at, and move *at to the next one. Returns false if there
 * is no complete chunk. */
bool png_chunk_next(
	const uint8_t *data, size_t bytes, size_t *at, struct png_chunk *out);

/* Read and check all chunks. The CRCs of IDAT chunks, which are most of the
 * file, are checked only if `all` is set. */
int png_header_read(struct png_header *h, const struct png_crcs *crcs,
	const void *data, size_t bytes, bool all, struct error *err);

/* Does the file have enough bytes for the size of its image? Returns 0 or
 * -EBADMSG. */
int png_check_ratio(const struct png_header *h, struct error *err);

/* Returns the bytes of a row of n pixels, without the byte that selects its
 * filter. */
size_t png_row_bytes(const struct png_header *h, uint32_t n);

/* A pass of an interlaced image: its pixel (i, j) is pixel (x + i * dx, y + j *
 * dy) of the image. An image that is not interlaced has only pass 0. */
struct png_pass {
	uint32_t x, y, dx, dy;
	uint32_t width, height; /* 0 if the pass is empty */
};

/* Get pass number i. Returns false if it is empty or does not exist. */
bool png_pass(const struct png_header *h, unsigned i, struct png_pass *out);

/* -- png_convert.c -----------------------------------------------------------
 */

/* Convert pixels `first` to first + n - 1 of a row. */
typedef void png_convert_fn(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to);

png_convert_fn *png_to_rgb(const struct png_header *h);

/* Ids are grey samples or indexes of colours. Returns the bytes of an id, or 0
 * if the image cannot have ids. */
unsigned png_id_bytes(const struct png_header *h);
png_convert_fn *png_to_ids(const struct png_header *h);

#endif
