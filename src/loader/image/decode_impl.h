/* SPDX-License-Identifier: MIT */
/* Struct decoder, guarded calls to libjpeg that catch its longjmp(), and the
 * mapping of stored pixels to upright ones. */
#ifndef IMAGE_DECODE_IMPL_H
#define IMAGE_DECODE_IMPL_H

#include <setjmp.h>
#include <stdio.h> /* needed by jpeglib.h */
#include <jpeglib.h>

#include "loader/image/decode.h"

struct png;

/* The number of rows that are turned or converted at a time. */
#define STRIP_ROWS ((uint32_t)16)

struct decoder {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	struct decode_limits limits;
	struct png *png; /* created for the first PNG; NULL before */
	uint8_t *strip;	 /* buffer for STRIP_ROWS stored rows; only grows */
	size_t strip_bytes;
	/* Used during one call: */
	uint8_t orientation;
	bool exif_seen;	   /* only the first EXIF block counts */
	bool keep_markers; /* set once: keep APPn and COM in cinfo.marker_list
			    */
	struct error *err; /* may be NULL */
	int rc;		   /* the result, after libjpeg has failed */
	jmp_buf failed;
};

/* -- decode_lib.c: libjpeg's callbacks ------------------------------------- */

/* Call fn, which may call libjpeg. Returns the result of fn, or the error of a
 * libjpeg call that failed. */
int decoder_guard(
	struct decoder *d, int (*fn)(struct decoder *d, void *arg), void *arg);

/* Leave the guarded function by longjmp(), and make decoder_guard() return rc.
 * The caller has set the message. */
_Noreturn void decoder_fail(struct decoder *d, int rc);

/*
 * Create libjpeg's object, and set its callbacks for errors, warnings, progress
 * and markers. Call this within decoder_guard(). Each image needs a new object,
 * which costs 1 us: jpeg_abort_decompress() does not remove tables, so a file
 * without tables would be decoded with those of the previous file.
 */
void decoder_create(struct decoder *d);

/* Set the bytes that libjpeg reads. */
void decoder_set_input(struct decoder *d, const void *data, size_t bytes);

/* -- decode_header.c ------------------------------------------------------- */

/* Begin an image: read and check its header, as decode_probe() does, and
 * prepare libjpeg for decoding. Afterwards, also after a failure, call
 * decoder_close_image(). */
int decoder_open_image(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err);

/* Free all memory of libjpeg. Also call this after a failure. */
void decoder_close_image(struct decoder *d);

/* Returns the bytes of the buffer that turns or converts rows of this width, or
 * 0 if rows need neither. */
size_t decoder_strip_bytes(const struct image_info *info, uint32_t width);

/* -- decode_exif.c --------------------------------------------------------- */

/* Returns the orientation in the contents of an APP1 marker, 1 to 8, or 0 if
 * there is none. */
uint8_t exif_orientation(const uint8_t *data, size_t bytes);
/* Like exif_orientation(), for EXIF data that begins with the TIFF header. */
uint8_t tiff_orientation(const uint8_t *data, size_t bytes);

/* -- decode_turn.c: stored pixels to upright ones -------------------------- */

/* Returns the part of the stored image that `out` shows, at the scale of
 * `out`. */
struct rect turn_stored(uint8_t orientation, const struct image *out);

/* Set x, y, width and height of `out` for a part of the stored image. */
void turn_upright(
	uint8_t orientation, const struct rect *stored, struct image *out);

/* Does the orientation exchange width and height? */
bool turn_transposes(uint8_t orientation);
/* Is the stored image mirrored from left to right, or from top to bottom? */
bool turn_flips_x(uint8_t orientation);
bool turn_flips_y(uint8_t orientation);

/* Copy `count` rows of the stored part, from its row `first` on, to their
 * places in `out`. The rows are interleaved RGB. */
void turn_rows(uint8_t orientation, const uint8_t *rows, size_t stride_bytes,
	uint32_t width, uint32_t first, uint32_t count,
	const struct image *out);

/* Convert interleaved CMYK to RGB in place. Values written by Adobe programs
 * are inverted. */
void cmyk_to_rgb(uint8_t *pixels, size_t count, bool inverted);

#endif
