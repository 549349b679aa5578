/* SPDX-License-Identifier: MIT */
/*
 * JPEG decoding, limited to a region: the only user of libjpeg-turbo in the
 * library. The bytes are not trusted: everything is checked before anything is
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
	uint64_t max_memory_bytes; /* that libjpeg may take for one image */
	unsigned max_scans;	   /* of a progressive one; at least 1 */
	bool ignore_orientation;
};

/* The checked contents of a header. */
struct image_info {
	uint32_t width, height; /* upright */
	uint8_t orientation;	/* EXIF, 1 to 8; 1 if there is none */
	uint8_t components;	/* 1, 3 or 4 */
	uint8_t mcu_width; /* as stored, pixels: what libjpeg can crop to */
	bool whole_rows;   /* it cannot, unless denom is 1 */
	/* The maximum memory of decode_region() while it runs, including the
	 * decoder's own memory but not out->data. */
	uint64_t memory_bytes;
};

/* -ENOMEM. */
int decoder_new(struct decoder **out, const struct decode_limits *limits);
void decoder_free(struct decoder *d);

/*
 * Read the header, and look whether the file has an end. 0, or
 *	-EMEDIUMTYPE	no JPEG (empty, HTML, another kind), or one of a kind
 *			that is not decoded (12 bits, lossless, arithmetic if
 *			the library lacks it)
 *	-EBADMSG	damaged, cut off (no end-of-image marker follows the
 *			header), or too short for what its header claims
 *	-E2BIG		over a limit
 *	-ENOMEM
 * with a message that says what is wrong, the path not included. Nothing that
 * grows with what the header claims is allocated.
 */
int decode_probe(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err);

/*
 * How the smallest image that holds `region` at 1/denom would look: fills all
 * of *out but `data` (with the margin that decoding needs, if any) and returns
 * the bytes that data must have. denom is 1, 2, 4 or 8; the region is not
 * empty and lies within the image.
 */
size_t decode_layout(const struct image_info *info, const struct rect *region,
	unsigned denom, struct image *out);

/*
 * Decode into out->data, as decode_layout() laid it out. Pixels of `region`
 * (outward to whole scaled pixels) are those of a full decode at the same
 * scale with libjpeg's default upsampling, bit for bit; around them there may
 * be a margin of anything. Grey, CMYK and YCCK become RGB.
 *
 * 0, or as decode_probe(). What comes back is a function of the bytes, the
 * region and denom alone. A truncated file is refused whatever the region is.
 * Corrupt data is refused if it lies above the region's last row (for a
 * progressive file: anywhere), and not looked for below it: whoever decodes an
 * example for several servings passes the union of all of them every time, or
 * the answer would depend on which are still to come. -EINVAL: `out` was not
 * laid out for this image.
 */
int decode_region(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/* The memory that the decoder holds between calls; for the memory during a call
 * see image_info.memory_bytes. */
size_t decoder_memory_bytes(const struct decoder *d);

#endif
