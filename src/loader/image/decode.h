/* SPDX-License-Identifier: MIT */
/*
 * Decodes regions of JPEGs and PNGs. No other code of the library uses
 * libjpeg-turbo and libspng; libspng is loaded when the first PNG is decoded.
 * The bytes are not trusted: everything is checked before anything is
 * allocated. A damaged file gives -errno and a message, never a crash, a hang
 * or an image. A decoder belongs to one thread at a time.
 */
#ifndef IMAGE_DECODE_H
#define IMAGE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/image/region.h"

struct decoder;

struct decode_limits {
	uint64_t max_pixels;	   /* maximum pixels of an image */
	uint64_t max_memory_bytes; /* maximum memory for decoding one image */
	unsigned max_scans; /* limit for a progressive image; at least 1 */
	bool ignore_orientation;
};

enum image_kind {
	IMAGE_JPEG = 0,
	IMAGE_PNG,
};

/* What a header says, after it was checked. */
struct image_info {
	enum image_kind kind;
	uint32_t width, height; /* of the upright image, in pixels */
	uint8_t orientation; /* EXIF orientation, 1 to 8; 1 if none is stored */
	uint8_t components;  /* channels: 1, 3 or 4; in a PNG 3 */
	uint8_t id_bytes;    /* bytes per id of a mask: 1 or 2; 0: not a mask */
	/* Width of an MCU in stored pixels; libjpeg crops to multiples of it */
	uint8_t mcu_width;
	bool whole_rows; /* libjpeg can crop columns only if the scale is 1 */
	/* The maximum memory that decode_region() uses while it runs, in bytes.
	 * This includes the decoder's own memory but not out->data. */
	uint64_t memory_bytes;
};

/* Returns 0 or -ENOMEM. */
int decoder_new(struct decoder **out, const struct decode_limits *limits);
void decoder_free(struct decoder *d);

/*
 * Read the header, and check that the file has an end. Returns 0, or
 *	-EMEDIUMTYPE	no JPEG or PNG (empty, HTML, another kind), or one of a
 *			kind that is not decoded (12 bits, lossless, arithmetic
 *			if the library lacks it)
 *	-EBADMSG	damaged, cut off (no end-of-image marker follows the
 *			header), or too short for what its header claims
 *	-E2BIG		over a limit
 *	-ELIBACC	a PNG, but there is no libspng
 *	-ENOMEM
 * with a message that says what is wrong, without the path. No memory is
 * allocated in proportion to sizes that the header claims.
 */
int decode_probe(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err);

/*
 * Lay out the smallest image that contains `region` at 1/denom, with a margin
 * if decoding needs one. This fills in all members of *out except `data`, and
 * returns the bytes that `data` must have. denom is 1, 2, 4 or 8; for a PNG it
 * is ignored, and the image is laid out at full size. The region must not be
 * empty and must be within the image.
 */
size_t decode_layout(const struct image_info *info, const struct rect *region,
	unsigned denom, struct image *out);

/*
 * Decode into out->data, which has the layout of decode_layout(). The pixels of
 * `region`, rounded outward to whole scaled pixels, are equal bit for bit to
 * those of a full decode at the same scale with libjpeg's default upsampling.
 * Pixels of the margin around the region are undefined. Grey, CMYK and YCCK
 * become RGB. A PNG becomes RGB as by PIL's convert("RGB"): alpha is dropped,
 * and samples of 16 bits are reduced to their upper 8 bits, except that grey
 * samples of 16 bits are clipped at 255.
 *
 * Returns 0, an error as decode_probe() does, or -EINVAL if `out` was not laid
 * out for this image. The result depends only on the bytes, the region and
 * denom. A truncated file and a PNG with a wrong CRC are refused for any
 * region. Other damage is refused if it is above the last row of the region or,
 * in a progressive file, anywhere; data below that row is not checked.
 * Therefore decode an example for several servings with the union of all their
 * regions. Otherwise the result would depend on which of the servings are still
 * to come.
 */
int decode_region(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/*
 * Lay out and decode a region of a mask, which is a PNG without an EXIF
 * orientation. Each pixel of the result is an id instead of RGB: the grey
 * sample as stored or, in a palette image, the index of the colour. An id has
 * info->id_bytes bytes in native byte order. Otherwise these calls are like
 * decode_layout() and decode_region(). decode_ids() returns -EMEDIUMTYPE if the
 * image cannot be a mask.
 */
size_t decode_ids_layout(const struct image_info *info,
	const struct rect *region, struct image *out);
int decode_ids(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/* Returns the bytes of memory that the decoder holds between calls. For the
 * memory during a call see image_info.memory_bytes. */
size_t decoder_memory_bytes(const struct decoder *d);
/* Free the memory that was not there when the decoder was new. */
void decoder_trim(struct decoder *d);

#endif
