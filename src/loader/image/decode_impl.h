/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the decoder: struct decoder, guarded calls to libjpeg
 * that catch its longjmp(), and the mapping of stored to upright pixels.
 */
#ifndef IMAGE_DECODE_IMPL_H
#define IMAGE_DECODE_IMPL_H

#include <setjmp.h>
#include <stdio.h> /* needed by jpeglib.h */
#include <jpeglib.h>

#include "loader/image/decode.h"

struct png;

/* The number of rows that are turned or converted at once. */
#define STRIP_ROWS ((uint32_t)16)

struct decoder {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	struct decode_limits limits;
	struct png *png; /* NULL before the first PNG */
	uint8_t *strip;	 /* STRIP_ROWS rows as stored; only grows */
	size_t strip_bytes;
	/* For the current call: */
	uint8_t orientation;
	bool exif_seen;	   /* only the first EXIF block counts */
	struct error *err; /* may be NULL */
	int rc;		   /* the result of a failed call */
	jmp_buf failed;
};

/* -- decode_lib.c: libjpeg's callbacks ------------------------------------- */

/* Call fn, which may call libjpeg. Returns the result of fn, or the error of a
 * libjpeg call that failed. */
int decoder_guard(
	struct decoder *d, int (*fn)(struct decoder *d, void *arg), void *arg);

/* Leave the guarded function; the message is set. */
_Noreturn void decoder_fail(struct decoder *d, int rc);

/*
 * Create libjpeg's object, and set the callbacks for its errors, warnings,
 * progress and markers. Called by decoder_guard(). Each image needs a new
 * object, which costs 1 us: libjpeg's tables outlive jpeg_abort_decompress(),
 * so a file without tables would be decoded with those of the file before it.
 */
void decoder_create(struct decoder *d);

/* Read from these bytes. */
void decoder_set_input(struct decoder *d, const void *data, size_t bytes);

/* -- decode_header.c ------------------------------------------------------- */

/* Begin an image: read and check its header, as decode_probe() does, and
 * prepare libjpeg for decoding. Call decoder_close_image() afterwards, also
 * after a failure. */
int decoder_open_image(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err);

/* Releases all memory of libjpeg; also after a failure. */
void decoder_close_image(struct decoder *d);

/* The memory for turning or converting rows of this width; 0: neither is
 * needed. */
size_t decoder_strip_bytes(const struct image_info *info, uint32_t width);

/* -- decode_exif.c --------------------------------------------------------- */

/* The orientation in the contents of an APP1 marker, 1 to 8; 0 if there is
 * none. */
uint8_t exif_orientation(const uint8_t *data, size_t bytes);
/* The same for bare EXIF data, which begins with the header of TIFF. */
uint8_t tiff_orientation(const uint8_t *data, size_t bytes);

/* -- decode_turn.c: from stored to upright --------------------------------- */

/* The part of the stored image that is in `out`, at the scale of `out`. */
struct rect turn_stored(uint8_t orientation, const struct image *out);

/* Set x, y, width and height of `out` from a part of the stored image. */
void turn_upright(
	uint8_t orientation, const struct rect *stored, struct image *out);

/* Does the orientation exchange width and height? */
bool turn_transposes(uint8_t orientation);
/* Is the stored image mirrored from left to right, or from top to bottom? */
bool turn_flips_x(uint8_t orientation);
bool turn_flips_y(uint8_t orientation);

/* Copy rows of the stored part, from row `first` on and as interleaved RGB, to
 * where they belong in `out`. */
void turn_rows(uint8_t orientation, const uint8_t *rows, size_t stride_bytes,
	uint32_t width, uint32_t first, uint32_t count,
	const struct image *out);

/* Convert interleaved CMYK to RGB in place. Adobe's values are inverted. */
void cmyk_to_rgb(uint8_t *pixels, size_t count, bool inverted);

#endif
