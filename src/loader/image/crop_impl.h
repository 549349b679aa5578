/* SPDX-License-Identifier: MIT */
/* The random numbers from which crops are made, and the crop by boxes. Pure
 * functions, for any thread. */
#ifndef IMAGE_CROP_IMPL_H
#define IMAGE_CROP_IMPL_H

#include "loader/image/augment.h"

/* The number of each draw. These numbers must not change, because every saved
 * stream depends on them. */
enum draw {
	DRAW_TRY = 0, /* four draws (area, aspect, x, y) in each of ten tries */
	DRAW_FLIP = 64,
	/* three draws, one for the factor of each kind of jitter */
	DRAW_JITTER,
	DRAW_CUTOUT_X = DRAW_JITTER + 3,
	DRAW_CUTOUT_Y,
	/* Up to 8 rounds: a threshold, then four draws for each of 40 crops */
	DRAW_IOU = 256,
};

/* Returns the n-th value of the generator splitmix64. Its state starts with a
 * hash of the seed, so that neighbouring seeds give unrelated values. */
uint64_t crop_draw(uint64_t seed, unsigned n);
/* Draw a number in [0, 1), with 53 random bits. */
double crop_uniform(uint64_t seed, unsigned n);
/* Draw an integer in [0, below). */
uint32_t crop_integer(uint64_t seed, unsigned n, uint32_t below);

/* The smallest side of a crop by boxes, as a share of the image's side. */
#define IOU_SIDE_LEAST 0.3

/* Set *to to the crop that crop_by_boxes() describes. At the call, *to is the
 * whole image. */
void crop_iou(uint64_t seed, const struct box *boxes, uint32_t count,
	struct rect *to);

#endif
