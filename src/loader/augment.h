/* SPDX-License-Identifier: MIT */
/*
 * From a decoded image to a sample of a batch: crop, antialiased resize, flip,
 * colour jitter, cutout, normalisation, type and layout. What is done is a
 * pure function of the configuration, the seed and the size of the image, and
 * is known before the image is decoded, so that only what the crops touch
 * need be. An augmenter (scratch memory) belongs to one thread at a time; its
 * pixels are the same with and without SIMD.
 */
#ifndef LOADER_AUGMENT_H
#define LOADER_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image.h"

/* Checked by whoever makes it; members as in refrain_config, no defaults. */
struct augment_config {
	uint32_t height, width;	   /* of a sample */
	int type, layout, augment; /* enums of refrain/loader.h */
	bool flip, normalise;
	float mean[3], std[3];
	float area_min, area_max, aspect_min, aspect_max;
	float jitter[3];
	uint32_t cutout;
};

/* One augmentation of one image. */
struct crop {
	struct rect box; /* in the upright image at full size */
	bool flip;
	float jitter[3];	     /* factors; 1: as it is */
	uint32_t cutout_x, cutout_y; /* top left corner, in the sample */
	uint32_t cutout_width, cutout_height; /* 0: none */
};

/* The bytes of one sample. */
size_t augment_sample_bytes(const struct augment_config *c);

/*
 * The augmentation of a seed for an image of this size. TRAIN: box as in
 * torchvision's RandomResizedCrop (ten draws of area and log-uniform aspect,
 * then the largest centre crop of an admissible aspect). EVAL and NONE ignore
 * the seed.
 */
void crop_of(const struct augment_config *c, uint64_t seed, uint32_t width,
	uint32_t height, struct crop *out);

/*
 * The smallest scale (1, 2, 4, 8: 1/denom) at which this crop still has as
 * many pixels as the sample in both directions. An example that is served
 * several times is decoded at the least of those of *all* its servings,
 * whichever of them are still to come, or its pixels would depend on when it
 * was decoded.
 */
unsigned crop_denom(const struct augment_config *c, const struct crop *crop);

/* Grow *to until it holds the box of `crop`; an empty one (width 0) becomes
 * the box. */
void crop_union(struct rect *to, const struct crop *crop);

struct augmenter;

/* -ENOMEM. */
int augmenter_new(struct augmenter **out, const struct augment_config *c);
void augmenter_free(struct augmenter *a);

/*
 * Make a sample: `out` has augment_sample_bytes(), 64-byte aligned or not.
 * `in` holds the box of the crop. -ENOMEM, and only while scratch memory still
 * grows (it is kept; see augmenter_memory_bytes()).
 */
int augment(struct augmenter *a, const struct image *in,
	const struct crop *crop, void *out);

size_t augmenter_memory_bytes(const struct augmenter *a);

#endif
