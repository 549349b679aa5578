/* SPDX-License-Identifier: MIT */
/* Random images, crops and configurations for tests of augmentation, and the
 * resize of loader/image/augment.h in plain doubles. */
#ifndef TESTS_UNIT_AUGMENT_FIXTURE_H
#define TESTS_UNIT_AUGMENT_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/augment.h"
#include "refrain/loader.h"
#include "suite.h"

/* Returns a random number below `below`, from a generator that the library does
 * not use. */
static inline uint32_t chance(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (uint32_t)((*state >> 33) % below);
}

static inline void config_init(struct augment_config *c, uint32_t size)
{
	*c = (struct augment_config){.height = size,
		.width = size,
		.flip = true,
		.normalise = true,
		.mean = {0.485F, 0.456F, 0.406F},
		.std = {0.229F, 0.224F, 0.225F},
		.area_min = 0.08F,
		.area_max = 1,
		.aspect_min = 0.75F,
		.aspect_max = 4 / 3.0F};
}

/*
 * Make the pixels of a whole image of width x height at 1/denom, in memory of
 * exactly their size, so that a sanitizer sees reads beyond it. `kind` 0:
 * noise, 1: extremes, 2: smooth.
 */
static inline void image_make(struct image *image, uint32_t width,
	uint32_t height, unsigned denom, unsigned kind, uint64_t *state)
{
	uint32_t w = (width + denom - 1) / denom;
	uint32_t h = (height + denom - 1) / denom;
	uint8_t *p;

	*image = (struct image){.stride_bytes = 3 * (size_t)w,
		.width = w,
		.height = h,
		.full_width = w,
		.full_height = h,
		.denom = denom};
	image->data = p = malloc(3 * (size_t)w * h);
	ck_assert_ptr_nonnull(p);
	for (uint32_t y = 0; y < h; y++)
		for (uint32_t i = 0; i < 3 * w; i++)
			*p++ = (uint8_t)(kind == 0 ? chance(state, 256)
					: kind == 1
					? 255 * chance(state, 2)
					: (unsigned)(127.5 *
						  (1 +
							  sin(0.05 * i +
								  0.08 * y))));
}

/* Make an arbitrary box. */
static inline void crop_make(struct crop *crop, uint32_t x, uint32_t y,
	uint32_t width, uint32_t height)
{
	*crop = (struct crop){.box = {x, y, width, height},
		.x = x,
		.y = y,
		.width = width,
		.height = height,
		.jitter = {1, 1, 1}};
}

static inline void crop_random(
	struct crop *crop, uint32_t width, uint32_t height, uint64_t *state)
{
	uint32_t w = 1 + chance(state, width), h = 1 + chance(state, height);

	crop_make(crop, chance(state, width - w + 1),
		chance(state, height - h + 1), w, h);
	crop->flip = chance(state, 2);
}

/* One axis of the reference resize. */
struct reference_axis {
	double start, length;
	int64_t low, high; /* pixels [low, high) may be used */
	uint32_t count;
};

static inline double reference_weight(
	const struct reference_axis *a, uint32_t i, int64_t j)
{
	double scale = a->length / a->count, support = fmax(scale, 1);
	double c = a->start + (i + 0.5) * scale;

	if (j < a->low || j >= a->high || j < floor(c - support + 0.5) ||
		j >= floor(c + support + 0.5))
		return 0;
	return fmax(0, 1 - fabs((double)j + 0.5 - c) / support);
}

/* Resize a line of values (`stride` apart) to a line of a->count values. */
static inline void reference_line(const struct reference_axis *a,
	const double *in, size_t stride, double *out, size_t out_stride)
{
	double support = fmax(a->length / a->count, 1);

	for (uint32_t i = 0; i < a->count; i++) {
		double c = a->start + (i + 0.5) * a->length / a->count;
		double sum = 0, weights = 0;

		for (int64_t j = (int64_t)(c - support) - 2;
			j < c + support + 2; j++) {
			double w = reference_weight(a, i, j);

			if (w <= 0)
				continue;
			weights += w;
			sum += w * in[(size_t)j * stride];
		}
		out[i * out_stride] = sum / weights;
	}
}

/* Convert a u8 NHWC sample to real numbers. The result has height * width * 3
 * numbers. */
static inline double *reference_resize(const struct image *in,
	const struct crop *crop, uint32_t width, uint32_t height)
{
	const double d = in->denom;
	const struct rect *box = &crop->box;
	struct reference_axis across = {crop->x / d, crop->width / d,
		(int64_t)floor(box->x / d),
		(int64_t)ceil(((double)box->x + box->width) / d), width};
	struct reference_axis down = {crop->y / d, crop->height / d,
		(int64_t)floor(box->y / d),
		(int64_t)ceil(((double)box->y + box->height) / d), height};
	size_t row = 3 * (size_t)in->width, to = 3 * (size_t)width;
	double *all = malloc(row * in->height * sizeof(double));
	double *half = malloc(to * in->height * sizeof(double));
	double *out = malloc(to * height * sizeof(double));

	ck_assert(all && half && out);
	for (size_t y = 0; y < in->height; y++)
		for (size_t i = 0; i < row; i++)
			all[y * row + i] = in->data[y * in->stride_bytes + i];
	for (size_t y = 0; y < in->height; y++)
		for (size_t c = 0; c < 3; c++)
			reference_line(&across, all + y * row + c, 3,
				half + y * to + c, 3);
	for (size_t i = 0; i < to; i++)
		reference_line(&down, half + i, to, out + i, to);
	if (crop->flip)
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < to / 2; x++) {
				size_t pixel = x / 3, c = x % 3;
				double *a = out + y * to + 3 * pixel + c;
				double *b = out + y * to +
					3 * (width - 1 - pixel) + c;
				double t = *a;

				if (pixel < width / 2)
					*a = *b, *b = t;
			}
	free(all);
	free(half);
	return out;
}

/* Create an augmenter with or without SIMD. */
static inline struct augmenter *augmenter_make(
	const struct augment_config *c, bool plain)
{
	const char *now = getenv("REFRAIN_DISABLE");
	char *was = now ? strdup(now) : NULL;
	struct augmenter *a;

	if (plain)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "simd", 1), 0);
	ck_assert_int_eq(augmenter_new(&a, c), 0);
	if (was)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", was, 1), 0);
	else
		ck_assert_int_eq(unsetenv("REFRAIN_DISABLE"), 0);
	free(was);
	return a;
}

#endif
