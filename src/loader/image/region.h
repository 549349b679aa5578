/* SPDX-License-Identifier: MIT */
/*
 * Types shared by decoding and augmentation: rectangles, and the decoded region
 * of an image. No code, no state.
 */
#ifndef IMAGE_REGION_H
#define IMAGE_REGION_H

#include <stddef.h>
#include <stdint.h>

/* A rectangle. If not stated otherwise, in pixels of the upright image (EXIF
 * orientation applied) at full size. */
struct rect {
	uint32_t x, y, width, height;
};

/*
 * A region of an image, decoded at 1/denom of its size: interleaved RGB,
 * upright. Pixel (0, 0) of `data` is pixel (x, y) of the scaled image, which
 * has full_width x full_height pixels (rounded up). The memory belongs to the
 * creator of the image. The start of `data` is aligned to 64 bytes, but its
 * rows are not aligned.
 */
struct image {
	uint8_t *data;
	size_t stride_bytes;
	uint32_t x, y, width, height;
	uint32_t full_width, full_height;
	unsigned denom; /* 1, 2, 4 or 8 */
};

#endif
