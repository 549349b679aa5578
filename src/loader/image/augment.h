/* SPDX-License-Identifier: MIT */
/*
 * Turns a decoded image into a sample of a batch: crop, antialiased resize,
 * flip, colour jitter, cutout, normalisation, type and layout. The augmentation
 * is a pure function of the configuration, the seed and the size of the image.
 * It is known before the image is decoded, so that only the region of the crops
 * is decoded. An augmenter (scratch memory) belongs to one thread at a time;
 * its pixels are the same with and without SIMD.
 */
#ifndef IMAGE_AUGMENT_H
#define IMAGE_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/region.h"

/* The scales of libjpeg that an image may be decoded at. */
enum augment_scale {
	SCALE_EXACT,	/* full size alone: the pixels of a full decode */
	SCALE_BY_CROP,	/* as few pixels as the crop needs; one crop an image */
	SCALE_BY_IMAGE, /* the same for all crops that the image can have */
};

/* The members are as in refrain_config, with the defaults filled in. The
 * creator has checked them. */
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
 * One augmentation of one image. The resampled area may begin and end within a
 * pixel (EVAL). Its filters may then use pixels outside it, but none outside
 * `box`. TRAIN and NONE resample the box itself.
 */
struct crop {
	struct rect box;	    /* in the upright image at full size */
	double x, y, width, height; /* what is resampled, likewise */
	bool flip;
	float jitter[3];	     /* factors; 1: as it is */
	uint32_t cutout_x, cutout_y; /* top left corner, in the sample */
	uint32_t cutout_width, cutout_height; /* 0: none */
};

/* The bytes of one sample. */
size_t augment_sample_bytes(const struct augment_config *c);

/*
 * The augmentation of a seed for an image of this size (neither side 0).
 *
 * TRAIN: as torchvision's RandomResizedCrop: ten draws of area and log-uniform
 * aspect, then the largest centre crop of an admissible aspect. Mirrored with
 * probability 1/2; jitter factors uniform in [max(0, 1 - x), 1 + x]; the centre
 * of the cutout uniform over the sample, clipped at its edges. Each is drawn
 * separately from (seed, its number), so that switching one off changes no
 * other. Only additions, multiplications, divisions and square roots of doubles
 * are used, which IEEE 754 defines to the bit, and no function of libm that is
 * not: a seed is the same crop on every machine.
 *
 * EVAL and NONE ignore the seed. EVAL: resize so that the shorter side (the
 * tighter one, if the sample is not square) becomes size * 8 / 7 rounded down,
 * the other in proportion rounded down, then the centre (halves to even), as
 * torchvision's Resize and CenterCrop.
 */
void crop_of(const struct augment_config *c, uint64_t seed, uint32_t width,
	uint32_t height, struct crop *out);

/*
 * The scale (1, 2, 4 or 8: 1/denom) to decode an image of width x height at for
 * this crop of it, as config.scale says: 1, or the smallest at which the crop,
 * or the least crop that the image can have, still has as many pixels as the
 * sample in both directions. An image with several crops is decoded once for
 * all of them. SCALE_BY_IMAGE then makes the pixels of each independent of the
 * others.
 */
unsigned crop_denom(const struct augment_config *c, const struct crop *crop,
	uint32_t width, uint32_t height);

/* Grow *to until it holds the box of `crop`; an empty one (width 0) becomes
 * the box. */
void crop_union(struct rect *to, const struct crop *crop);

struct augmenter;

/* -ENOMEM. */
int augmenter_new(struct augmenter **out, const struct augment_config *c);
void augmenter_free(struct augmenter *a);

/*
 * Make a sample: `out` has augment_sample_bytes(), 64-byte aligned or not.
 * `in` holds the box of the crop, outward to whole pixels of its scale.
 * -EINVAL if it does not; -ENOMEM, and only while scratch memory still grows
 * (it is kept; see augmenter_memory_bytes()).
 *
 * The resize is that of Pillow's BILINEAR after a crop to the box. Along an
 * axis, in pixels of `in`, `length` pixels from `start` on become n: with
 * scale = length / n, support = max(scale, 1) and c = start + (i + 1/2) *
 * scale, output i is the mean of the pixels j in [floor(c - support + 1/2),
 * floor(c + support + 1/2)) that the box touches, weighted with
 * max(0, 1 - |j + 1/2 - c| / support). In the unmirrored u8 sample, without
 * jitter, every value is within 1 of that in real numbers, rounded once.
 *
 * Then, on u8 values, each rounded to nearest: brightness (v * f), contrast
 * (m + (v - m) * f, m the mean grey of the sample), saturation (g + (v - g) *
 * f, g the grey of the pixel), grey being 0.299 R + 0.587 G + 0.114 B rounded.
 * Floats are v * (1 / (255 std)) + (-mean / std), two roundings to binary32,
 * or v * (1 / 255), and F16 those rounded to nearest even. The cutout is the
 * mean of the configuration: 0 where values are normalised.
 */
int augment(struct augmenter *a, const struct image *in,
	const struct crop *crop, void *out);

size_t augmenter_memory_bytes(const struct augmenter *a);

#endif
