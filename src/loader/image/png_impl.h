/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the PNG decoder. Chunks are parsed and checked here;
 * libspng gets only IHDR, PLTE, IDAT and IEND, so that none of its parsers for
 * text and profiles ever sees a byte, and returns rows of samples as they are
 * in the file.
 */
#ifndef IMAGE_PNG_IMPL_H
#define IMAGE_PNG_IMPL_H

#include "loader/image/decode.h"

/* A PNG decoder belongs to a decoder, and so to one thread. */
struct png;

/* The caller has checked nothing. Does it begin as a PNG? */
bool png_is(const void *data, size_t bytes);

/* The first PNG of a decoder makes its *p. The rest is as for decode_probe()
 * and decode_region(). -ELIBACC if there is no libspng. */
int png_probe(struct png **p, const struct decode_limits *limits,
	const void *data, size_t bytes, struct image_info *info,
	struct error *err);
int png_region(struct png *p, const void *data, size_t bytes,
	const struct image_info *info, const struct image *out,
	struct error *err);

/* As decode_ids(). */
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

/* The checked contents of a file up to its end. */
struct png_header {
	uint32_t width, height; /* as stored */
	uint8_t depth, color;
	bool interlaced;
	uint8_t orientation; /* 1 to 8 */
	uint8_t palette[256][3];
	uint64_t idat_bytes;
};

struct png_chunk {
	const uint8_t *start; /* of its length; the content begins 8 later */
	uint32_t bytes;	      /* of the content */
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

/* Read the chunk at *at and move *at behind it; false if it is not there as a
 * whole. */
bool png_chunk_next(
	const uint8_t *data, size_t bytes, size_t *at, struct png_chunk *out);

/* Read and check all chunks. The CRCs of IDAT, most of the file, are only
 * checked if `all`. */
int png_header_read(struct png_header *h, const struct png_crcs *crcs,
	const void *data, size_t bytes, bool all, struct error *err);

/* Can the file have enough bytes for its size? */
int png_check_ratio(const struct png_header *h, struct error *err);

/* The bytes of a row of n pixels, without the byte of its filter. */
size_t png_row_bytes(const struct png_header *h, uint32_t n);

/* A pass of an image: its pixel (i, j) is that at (x + i * dx, y + j * dy). An
 * image that is not interlaced has only pass 0. */
struct png_pass {
	uint32_t x, y, dx, dy;
	uint32_t width, height; /* 0 if it is empty */
};

/* Get pass number i; false: there is none, or it is empty. */
bool png_pass(const struct png_header *h, unsigned i, struct png_pass *out);

/* -- png_convert.c -----------------------------------------------------------
 */

/* Convert the pixels `first` to first + n - 1 of a row. */
typedef void png_convert_fn(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to);

png_convert_fn *png_to_rgb(const struct png_header *h);

/* Ids are grey samples or numbers of colours; 0 bytes: the image has none. */
unsigned png_id_bytes(const struct png_header *h);
png_convert_fn *png_to_ids(const struct png_header *h);

#endif
