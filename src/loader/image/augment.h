/* SPDX-License-Identifier: MIT */
/*
 * Turns a decoded image into a sample of a batch: crop, antialiased resize,
 * flip, colour jitter, cutout, normalisation, conversion to the type and
 * layout. The augmentation is a pure function of the configuration, the seed
 * and the size of the image. Therefore it is known before the image is decoded,
 * and only the region of the crops needs to be decoded. An augmenter holds
 * scratch memory and belongs to one thread at a time. Pixels are the same with
 * and without SIMD.
 */
#ifndef IMAGE_AUGMENT_H
#define IMAGE_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/box.h"
#include "loader/image/region.h"

/* The scales of libjpeg at which an image may be decoded. */
enum augment_scale {
	/* Only full size, so that every pixel is the same as in a full
	 * decode */
	SCALE_EXACT,
	/* The smallest scale that the crop allows, for images with one crop */
	SCALE_BY_CROP,
	/* The same scale for all possible crops of the image */
	SCALE_BY_IMAGE,
};

/* The configuration, checked by the creator. Members are as in refrain_config,
 * with defaults filled in. */
struct augment_config {
	uint32_t height, width;	   /* size of a sample in pixels */
	int type, layout, augment; /* enums of refrain/loader.h */
	bool flip, normalise;
	float mean[3], std[3];
	float area_min, area_max, aspect_min, aspect_max;
	float jitter[3];
	uint32_t cutout;
	enum augment_scale scale;
};

/*
 * One augmentation of one image. With EVAL, the resampled area may begin and
 * end within a pixel, and the filters may read pixels outside of the area, but
 * only pixels in `box`. With TRAIN and NONE, the area is the box.
 */
struct crop {
	struct rect box; /* in pixels of the upright image at full size */
	double x, y, width, height; /* the resampled area, in the same unit */
	/* Only with FIT: the part of the sample that shows the box; the rest is
	 * filled. In this case the area is that of the whole sample, and may
	 * exceed the image. If the width is 0, the whole sample shows the
	 * box */
	struct rect inner;
	bool flip;
	float jitter[3]; /* factors; 1: no change */
	/* Top left corner, in pixels of the sample */
	uint32_t cutout_x, cutout_y;
	uint32_t cutout_width, cutout_height; /* 0: no cutout */
};

/* Returns the size of one sample in bytes. */
size_t augment_sample_bytes(const struct augment_config *c);

/*
 * Compute the augmentation that a seed gives for an image of this size (neither
 * side is 0).
 *
 * TRAIN is torchvision's RandomResizedCrop: up to ten draws of an area and a
 * log-uniform aspect ratio until the box fits, else the largest centre crop
 * with an allowed aspect ratio. The sample is mirrored with probability 1/2.
 * Jitter factors are uniform in [max(0, 1 - x), 1 + x]. The centre of the
 * cutout is uniform over the sample, and the cutout is clipped at the edges.
 * Each value is drawn from the seed and the value's own number, so that turning
 * one off changes no other. Only additions, multiplications, divisions and
 * square roots of doubles are used. IEEE 754 defines their results to the bit,
 * so a seed gives the same crop on every machine.
 *
 * IOU is a crop as by torchvision's RandomIoUCrop; see crop_by_boxes(). Without
 * boxes, the crop is the whole image. Mirroring, jitter and cutout are those of
 * TRAIN.
 *
 * EVAL, NONE and FIT ignore the seed. EVAL is torchvision's Resize and
 * CenterCrop: the image is resized so that its shorter side (if the sample is
 * not square, the side that limits the scale) becomes the sample's side * 8 /
 * 7, rounded down; the other side is in proportion, rounded down. Then the
 * centre is cut out, and half pixels are rounded to even. FIT resizes the whole
 * image, without changing its aspect ratio, so that it just fits into the
 * sample, and places it in the centre.
 */
static inline void crop_of(const struct augment_config *c, uint64_t seed,
	uint32_t width, uint32_t height, struct crop *out);

/*
 * Like crop_of(), for an image with boxes. Only IOU uses them. It draws a
 * threshold: 0, .1, .3, .5, .7, .9 or none. Then it draws up to 40 crops with
 * sides of 0.3 to 1 times the image's and an aspect ratio of 1/2 to 2. It takes
 * the first crop that contains the centre of a box whose intersection over
 * union with the crop is at least the threshold. If there is no such crop, it
 * draws another threshold, up to 8 in all. Boxes of crowds do not count. The
 * crop is the whole image if the drawn threshold is none, if there is no box,
 * or if no draw succeeds.
 */
void crop_by_boxes(const struct augment_config *c, uint64_t seed,
	uint32_t width, uint32_t height, const struct box *boxes,
	uint32_t count, struct crop *out);

static inline void crop_of(const struct augment_config *c, uint64_t seed,
	uint32_t width, uint32_t height, struct crop *out)
{
	crop_by_boxes(c, seed, width, height, NULL, 0, out);
}

/*
 * Returns the denominator (1, 2, 4 or 8) of the scale at which an image of
 * width x height is decoded for this crop. SCALE_EXACT: 1. SCALE_BY_CROP: the
 * denominator of the smallest scale at which the crop still has at least as
 * many pixels as the sample in both directions. SCALE_BY_IMAGE: the same for
 * the smallest crop that the image can have. An image with several crops is
 * decoded once for all of them, and the pixels of one crop must not depend on
 * the others.
 */
unsigned crop_denom(const struct augment_config *c, const struct crop *crop,
	uint32_t width, uint32_t height);

/* Grow *to until it contains the box of `crop`. If *to is empty (its width is
 * 0), it becomes the box. */
void crop_union(struct rect *to, const struct crop *crop);

struct augmenter;

/* Returns 0 or -ENOMEM. */
int augmenter_new(struct augmenter **out, const struct augment_config *c);
void augmenter_free(struct augmenter *a);

/*
 * Make a sample. `out` has augment_sample_bytes() and need not be aligned.
 * Returns 0, or -EINVAL if `in` does not contain the box of the crop, rounded
 * outward to whole pixels at the scale of `in`, or -ENOMEM if scratch memory
 * cannot grow. Scratch memory is kept between calls; see
 * augmenter_memory_bytes().
 *
 * The resize is that of Pillow's BILINEAR after a crop to the box. Along one
 * axis, in pixels of `in`, `length` pixels from `start` on become n outputs.
 * Let scale = length / n, support = max(scale, 1) and c = start + (i + 1/2) *
 * scale. Output i is the mean of the pixels j in [floor(c - support + 1/2),
 * floor(c + support + 1/2)) that overlap the box, weighted with max(0, 1 - |j +
 * 1/2 - c| / support). In a u8 sample that is neither mirrored nor jittered,
 * every value differs by at most 1 from the exact result rounded once.
 *
 * Then jitter is applied to u8 values, and each result is rounded to nearest:
 * brightness (v * f), contrast (m + (v - m) * f, where m is the mean grey of
 * the sample), saturation (g + (v - g) * f, where g is the grey of the pixel).
 * Grey is 0.299 R + 0.587 G + 0.114 B, rounded. Values of an f32 sample are v *
 * (1 / (255 std)) + (-mean / std), with two roundings to binary32, or v * (1 /
 * 255) without normalisation. Values of an f16 sample are the same, rounded to
 * nearest even. The cutout is filled with the mean of the configuration, which
 * is 0 in a normalised sample.
 */
int augment(struct augmenter *a, const struct image *in,
	const struct crop *crop, void *out);

/* augment_finish() may read this many bytes after the pixels. */
#define AUGMENT_SLACK_BYTES 32u

/*
 * Turn the u8 pixels of a sample (RGB, row by row), which another process has
 * made, into the same sample in the type and layout of this configuration.
 * `pixels` must be those of augment() with the same crop, type REFRAIN_U8 and
 * layout REFRAIN_NHWC; the result is the same with and without the cutout in
 * `pixels`.
 */
void augment_finish(struct augmenter *a, const struct crop *crop,
	const uint8_t *pixels, void *out);

size_t augmenter_memory_bytes(const struct augmenter *a);
/* Free the memory that was not there when the augmenter was new. */
void augmenter_trim(struct augmenter *a);

#endif
