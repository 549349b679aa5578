/* SPDX-License-Identifier: MIT */
/*
 * Decoding of JPEGs and PNGs, limited to a region: the only user of
 * libjpeg-turbo and libspng in the library. libspng is loaded by the first PNG.
 * The bytes are not trusted: everything is checked before anything is
 * allocated. A bad file gives -errno and a message, never a crash, a hang or an
 * image. A decoder belongs to one thread at a time.
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
	uint64_t max_pixels;	   /* of an image */
	uint64_t max_memory_bytes; /* that decoding one image may take */
	unsigned max_scans;	   /* of a progressive image; at least 1 */
	bool ignore_orientation;
};

enum image_kind {
	IMAGE_JPEG = 0,
	IMAGE_PNG,
};

/* The checked contents of a header. */
struct image_info {
	enum image_kind kind;
	uint32_t width, height; /* upright */
	uint8_t orientation;	/* EXIF, 1 to 8; 1 if there is none */
	uint8_t components;	/* 1, 3 or 4; PNG: 3 */
	uint8_t id_bytes;	/* 1 or 2; 0: it cannot be a mask */
	/* Stored pixels: libjpeg can crop to multiples of this */
	uint8_t mcu_width;
	bool whole_rows; /* libjpeg can crop columns only if denom is 1 */
	/* The maximum memory of decode_region() while it runs, including the
	 * decoder's own memory but not out->data. */
	uint64_t memory_bytes;
};

/* -ENOMEM. */
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
 * if decoding needs one. Fills in all of *out but `data`, and returns the bytes
 * that `data` must have. denom is 1, 2, 4 or 8; a PNG is laid out at
 * full size whatever it is. The region is not empty and lies within the image.
 */
size_t decode_layout(const struct image_info *info, const struct rect *region,
	unsigned denom, struct image *out);

/*
 * Decode into out->data, as laid out by decode_layout(). The pixels of
 * `region`, rounded outward to whole scaled pixels, are bit for bit those of a
 * full decode at the same scale with libjpeg's default upsampling. The pixels
 * of the margin around them are undefined. Grey, CMYK and YCCK become RGB. A
 * PNG becomes RGB as by PIL's convert("RGB"): alpha is dropped, of 16 bits the
 * upper 8 are kept, but greyscale of 16 bits is clipped at 255.
 *
 * Returns 0, an error as decode_probe(), or -EINVAL if `out` was not laid out
 * for this image. The result depends only on the bytes, the region and denom. A
 * truncated file is refused whatever the region is, and a PNG with a wrong CRC,
 * too. Other corrupt data is refused if
 * it lies above the region's last row, in a progressive file anywhere; data
 * below that row is not checked. So decode an example for several servings with
 * the union of all their regions: otherwise the result would depend on which
 * servings are still to come.
 */
int decode_region(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/*
 * Lay out and decode a region of a mask, which is a PNG without an orientation:
 * in place of RGB, a pixel is its grey sample as it is stored, or the number of
 * its colour, in info->id_bytes bytes of this machine's order. Otherwise as
 * decode_layout() and decode_region(). -EMEDIUMTYPE if it cannot be a mask.
 */
size_t decode_ids_layout(const struct image_info *info,
	const struct rect *region, struct image *out);
int decode_ids(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/* The memory that the decoder holds between calls; for the memory during a call
 * see image_info.memory_bytes. */
size_t decoder_memory_bytes(const struct decoder *d);

#endif
