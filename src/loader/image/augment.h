/* SPDX-License-Identifier: MIT */
/*
 * Turns a decoded image into a sample of a batch: crop, antialiased resize,
 * flip, colour jitter, cutout, normalisation, type and layout. The augmentation
 * is a pure function of the configuration, the seed and the size of the image.
 * Therefore it is known before the image is decoded, and only the region of the
 * crops is decoded. An augmenter is scratch memory, and belongs to one thread
 * at a time. Pixels are the same with and without SIMD.
 */
#ifndef IMAGE_AUGMENT_H
#define IMAGE_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/box.h"
#include "loader/image/region.h"

/* At which of libjpeg's scales an image may be decoded. */
enum augment_scale {
	/* Only at full size, so that no pixel differs from a full decode */
	SCALE_EXACT,
	/* The smallest scale that the crop allows; an image has one crop */
	SCALE_BY_CROP,
	/* The same scale for all crops that the image can have */
	SCALE_BY_IMAGE,
};

/* Checked by its creator. The members are as in refrain_config, with defaults
 * filled in. */
struct augment_config {
	uint32_t height, width;	   /* of a sample */
	int type, layout, augment; /* enums of refrain/loader.h */
	bool flip, normalise;
	float mean[3], std[3];
	float area_min, area_max, aspect_min, aspect_max;
	float jitter[3];
	uint32_t cutout;
	enum augment_scale scale;
};

/*
 * One augmentation of one image. With EVAL the resampled area may begin and end
 * within a pixel, and its filters may use pixels outside of it, but none
 * outside of `box`. TRAIN and NONE resample the box itself.
 */
struct crop {
	struct rect box;	    /* in the upright image at full size */
	double x, y, width, height; /* the resampled area, in the same pixels */
	/* With FIT the part of the sample that shows the box; the rest is
	 * filled. The area is that of the whole sample, and may exceed the
	 * image. Width 0: the whole sample */
	struct rect inner;
	bool flip;
	float jitter[3];	     /* factors; 1: no change */
	uint32_t cutout_x, cutout_y; /* top left corner, in the sample */
	uint32_t cutout_width, cutout_height; /* 0: none */
};

/* The bytes of one sample. */
size_t augment_sample_bytes(const struct augment_config *c);

/*
 * Compute the augmentation that a seed gives for an image of this size (neither
 * side is 0).
 *
 * TRAIN: as torchvision's RandomResizedCrop: ten draws of area and log-uniform
 * aspect, then the largest centre crop of an admissible aspect. It is mirrored
 * with probability 1/2. Jitter factors are uniform in [max(0, 1 - x), 1 + x].
 * The centre of the cutout is uniform over the sample; the cutout is clipped at
 * the edges. Each value is drawn from the seed and a number of its own, so that
 * switching one off changes no other. Only additions, multiplications,
 * divisions and square roots of doubles are used, which IEEE 754 defines to the
 * bit, so that a seed gives the same crop on every machine.
 *
 * IOU: RandomIoUCrop of torchvision, see crop_by_boxes(). Without boxes it is
 * the whole image. Mirroring, jitter and cutout are those of TRAIN.
 *
 * EVAL, NONE and FIT ignore the seed. EVAL is torchvision's Resize and
 * CenterCrop: the shorter side (the tighter one, if the sample is not square)
 * becomes size
 * * 8 / 7 rounded down, and the other side is in proportion, rounded down. Then
 * the centre is cut out; halves are rounded to even. FIT resizes all of the
 * image, keeping its aspect, so that it just fits in the sample, in the centre.
 */
void crop_of(const struct augment_config *c, uint64_t seed, uint32_t width,
	uint32_t height, struct crop *out);

/*
 * The same for an image with boxes, which decide what IOU draws: a threshold of
 * 0, .1, .3, .5, .7, .9 or none, and then up to 40 crops with sides of 0.3 to 1
 * of the image and an aspect of 1/2 to 2, until one has the centre of a box
 * whose intersection over union with the crop is at least the threshold. If
 * none has, another threshold is drawn, up to 8 in all. Crowds do not count. It
 * is the whole image if no threshold is drawn, if there is no box, or after the
 * last draw.
 */
void crop_by_boxes(const struct augment_config *c, uint64_t seed,
	uint32_t width, uint32_t height, const struct box *boxes,
	uint32_t count, struct crop *out);

/*
 * The denominator (1, 2, 4 or 8) of the scale at which to decode an image of
 * width x height for this crop. SCALE_EXACT: 1. SCALE_BY_CROP: the smallest
 * scale at which the crop still has as many pixels as the sample in both
 * directions. SCALE_BY_IMAGE: the same, but for the smallest crop that the
 * image can have: an image with several crops is decoded once for all of them,
 * and the pixels of one crop must not depend on the others.
 */
unsigned crop_denom(const struct augment_config *c, const struct crop *crop,
	uint32_t width, uint32_t height);

/* Grow *to until it contains the box of `crop`. If *to is empty (width 0), it
 * becomes the box. */
void crop_union(struct rect *to, const struct crop *crop);

struct augmenter;

/* -ENOMEM. */
int augmenter_new(struct augmenter **out, const struct augment_config *c);
void augmenter_free(struct augmenter *a);

/*
 * Make a sample. `out` has augment_sample_bytes() and need not be aligned. `in`
 * must contain the box of the crop, rounded outward to whole pixels of its
 * scale; otherwise returns -EINVAL. Returns -ENOMEM if scratch memory cannot
 * grow; it is kept between calls (see augmenter_memory_bytes()).
 *
 * The resize is that of Pillow's BILINEAR after a crop to the box. Along an
 * axis, in pixels of `in`, `length` pixels from `start` on become n: with scale
 * = length / n, support = max(scale, 1) and c = start + (i + 1/2) * scale,
 * output i is the mean of the pixels j in [floor(c - support + 1/2), floor(c +
 * support + 1/2)) that the box touches, weighted with max(0, 1 - |j + 1/2 - c|
 * / support). In an unmirrored u8 sample without jitter, every value is within
 * 1 of the exact result rounded once.
 *
 * Then these are applied to u8 values, and each result is rounded to nearest:
 * brightness (v * f), contrast (m + (v - m) * f, m the mean grey of the
 * sample), saturation (g + (v - g) * f, g the grey of the pixel), grey being
 * 0.299 R + 0.587 G + 0.114 B rounded. Float samples are v * (1 / (255 std)) +
 * (-mean / std), with two roundings to binary32, or v * (1 / 255) without
 * normalisation. F16 samples are these, rounded to nearest even. The cutout has
 * the mean of the configuration, which is 0 if values are normalised.
 */
int augment(struct augmenter *a, const struct image *in,
	const struct crop *crop, void *out);

size_t augmenter_memory_bytes(const struct augmenter *a);

#endif
