/* SPDX-License-Identifier: MIT */
/* The draws of which crops are made, and the crop that boxes decide. Pure
 * functions; any thread. */
#ifndef IMAGE_CROP_IMPL_H
#define IMAGE_CROP_IMPL_H

#include "loader/image/augment.h"

/* The number of each draw. They must not change: every saved stream depends on
 * them. */
enum draw {
	DRAW_TRY = 0, /* area, aspect, x, y of each of the ten tries */
	DRAW_FLIP = 64,
	DRAW_JITTER, /* three */
	DRAW_CUTOUT_X = DRAW_JITTER + 3,
	DRAW_CUTOUT_Y,
	DRAW_IOU = 256, /* a threshold, and 40 times four values; again */
};

/* The n-th value of splitmix64, started with the hash of the seed, so that
 * neighbouring seeds give unrelated values. */
uint64_t crop_draw(uint64_t seed, unsigned n);
/* Draw a number in [0, 1), with 53 random bits. */
double crop_uniform(uint64_t seed, unsigned n);
/* Draw an integer in [0, below). */
uint32_t crop_integer(uint64_t seed, unsigned n, uint32_t below);

/* Set *to, which is the whole image, to the crop that crop_by_boxes() says. */
void crop_iou(uint64_t seed, const struct box *boxes, uint32_t count,
	struct rect *to);

#endif
