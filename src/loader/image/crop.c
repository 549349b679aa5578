/* SPDX-License-Identifier: MIT */
/*
 * Chooses the part of an image that becomes a sample, and its augmentation. All
 * functions are pure functions of the configuration, the seed and the image's
 * size, for any thread. They use only additions, multiplications, divisions and
 * square roots of doubles, so that a seed gives the same crop on every machine.
 * Therefore logarithm and exponential function are implemented here.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "loader/image/crop_impl.h"
#include "refrain/loader.h"

/* With x87 arithmetic, results would depend on which values the compiler keeps
 * in registers, because these have more bits. */
_Static_assert(FLT_EVAL_METHOD == 0, "doubles must be computed as doubles");

#define TRIES 10
#define LN2 0.69314718055994530942

/* Natural logarithm: x = m * 2^exponent with m in [0.7, 1.5), and ln(m) is
 * computed by the series of 2 artanh((m - 1) / (m + 1)). */
static double ln(double x)
{
	int exponent;
	double m = frexp(x, &exponent), s, sum = 0;

	if (m < 0.70710678) {
		m *= 2;
		exponent--;
	}
	s = (m - 1) / (m + 1);
	for (int k = 25; k > 0; k -= 2)
		sum = sum * s * s + 1.0 / k;
	return 2 * s * sum + exponent * LN2;
}

/* Exponential function: x = whole * ln(2) + t, and e^t is computed by its
 * series for |t| <= ln(2) / 2. */
static double power_of_e(double x)
{
	double whole = floor(x / LN2 + 0.5), t = x - whole * LN2, sum = 1;

	for (int k = 16; k > 0; k--)
		sum = 1 + sum * t / k;
	return ldexp(sum, (int)whole);
}

static uint32_t rounded_side(double x)
{
	return (uint32_t)(x + 0.5);
}

static void use_whole_box(struct crop *out)
{
	out->x = out->box.x;
	out->y = out->box.y;
	out->width = out->box.width;
	out->height = out->box.height;
}

/* Draw an area and an aspect ratio once. Returns false if such a box does not
 * fit into the image. */
static bool try_box(const struct augment_config *c, uint64_t seed, unsigned n,
	uint32_t width, uint32_t height, struct rect *box)
{
	double low = ln(c->aspect_min), high = ln(c->aspect_max);
	double area = (double)width * height, share, aspect, w, h;

	share = crop_uniform(seed, n) * ((double)c->area_max - c->area_min);
	area *= c->area_min + share;
	aspect = power_of_e(low + crop_uniform(seed, n + 1) * (high - low));
	w = sqrt(area * aspect) + 0.5;
	h = sqrt(area / aspect) + 0.5;
	if (!(w >= 1 && h >= 1 && w < width + 1.0 && h < height + 1.0))
		return false;
	box->width = (uint32_t)w;
	box->height = (uint32_t)h;
	box->x = crop_integer(seed, n + 2, width - box->width + 1);
	box->y = crop_integer(seed, n + 3, height - box->height + 1);
	return true;
}

/* Round x to a whole number of pixels between 1 and `most`. */
static uint32_t within(double x, uint32_t most)
{
	if (x >= most)
		return most;
	return x < 1 ? 1 : rounded_side(x);
}

static void centre_box(const struct augment_config *c, uint32_t width,
	uint32_t height, struct rect *box)
{
	double aspect = (double)width / height;

	box->width = width;
	box->height = height;
	if (aspect < c->aspect_min)
		box->height = within(width / (double)c->aspect_min, height);
	else if (aspect > c->aspect_max)
		box->width = within(height * (double)c->aspect_max, width);
	box->x = (width - box->width) / 2;
	box->y = (height - box->height) / 2;
}

/* Clip one axis of a square around `centre` to `size`, and return where it
 * begins and how long it is. */
static void cut(uint32_t side, uint32_t centre, uint32_t size, uint32_t *start,
	uint32_t *length)
{
	uint32_t before = side / 2, after = side - before;

	*start = centre > before ? centre - before : 0;
	*length = (size - centre < after ? size : centre + after) - *start;
}

/* Draw the values that do not depend on the crop: flip, jitter and cutout. */
static void draw_rest(
	const struct augment_config *c, uint64_t seed, struct crop *out)
{
	out->flip = c->flip && crop_draw(seed, DRAW_FLIP) >> 63;
	for (unsigned i = 0; i < 3; i++) {
		double x = c->jitter[i], low = x < 1 ? 1 - x : 0;
		double u = crop_uniform(seed, DRAW_JITTER + i);

		out->jitter[i] = (float)(low + u * (1 + x - low));
	}
	if (!c->cutout)
		return;
	cut(c->cutout, crop_integer(seed, DRAW_CUTOUT_X, c->width), c->width,
		&out->cutout_x, &out->cutout_width);
	cut(c->cutout, crop_integer(seed, DRAW_CUTOUT_Y, c->height), c->height,
		&out->cutout_y, &out->cutout_height);
}

static void train(const struct augment_config *c, uint64_t seed, uint32_t width,
	uint32_t height, struct crop *out)
{
	unsigned n = 0;

	while (n < TRIES &&
		!try_box(c, seed, DRAW_TRY + 4 * n, width, height, &out->box))
		n++;
	if (n == TRIES)
		centre_box(c, width, height, &out->box);
	use_whole_box(out);
	draw_rest(c, seed, out);
}

/*
 * Compute one axis of EVAL: `size` pixels are resized to `resized`, and the
 * `wanted` pixels in the centre are taken. Also computes the range of pixels
 * that the filters read.
 */
static void centre_axis(uint32_t size, uint64_t resized, uint32_t wanted,
	double *start, double *length, uint32_t *box_start, uint32_t *box_size)
{
	double scale = (double)size / (double)resized;
	double support = scale < 1 ? 1 : scale, low, high;
	uint64_t before = (resized - wanted) / 2;

	/* Half pixels are rounded to even */
	before += (resized - wanted) % 2 & before;
	*start = (double)before * scale;
	*length = wanted * scale;
	low = floor(*start - support);
	high = ceil(*start + *length + support);
	*box_start = low < 0 ? 0 : (uint32_t)low;
	*box_size = (high < size ? (uint32_t)high : size) - *box_start;
}

static void evaluate(const struct augment_config *c, uint32_t width,
	uint32_t height, struct crop *out)
{
	uint64_t to_width = (uint64_t)c->width * 8 / 7;
	uint64_t to_height = (uint64_t)c->height * 8 / 7;

	if (to_width * height >= to_height * width)
		to_height = to_width * height / width;
	else
		to_width = to_height * width / height;
	centre_axis(width, to_width, c->width, &out->x, &out->width,
		&out->box.x, &out->box.width);
	centre_axis(height, to_height, c->height, &out->y, &out->height,
		&out->box.y, &out->box.height);
}

/* FIT: scale the image so that it just fits into the sample, in its centre. */
static void fit_crop(const struct augment_config *c, uint32_t width,
	uint32_t height, struct crop *out)
{
	uint64_t w = c->width, h = c->height;

	if (w * height <= h * width)
		h = (2 * w * height + width) / (2 * (uint64_t)width);
	else
		w = (2 * h * width + height) / (2 * (uint64_t)height);
	w = w > 0 ? w : 1;
	h = h > 0 ? h : 1;
	out->box = (struct rect){0, 0, width, height};
	out->inner.width = (uint32_t)w;
	out->inner.height = (uint32_t)h;
	out->inner.x = (c->width - out->inner.width) / 2;
	out->inner.y = (c->height - out->inner.height) / 2;
	out->width = (double)c->width * width / (double)w;
	out->height = (double)c->height * height / (double)h;
	out->x = -((double)out->inner.x * width / (double)w);
	out->y = -((double)out->inner.y * height / (double)h);
}

void crop_by_boxes(const struct augment_config *c, uint64_t seed,
	uint32_t width, uint32_t height, const struct box *boxes,
	uint32_t count, struct crop *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < 3; i++)
		out->jitter[i] = 1;
	switch (c->augment) {
	case REFRAIN_AUGMENT_TRAIN:
		train(c, seed, width, height, out);
		return;
	case REFRAIN_AUGMENT_EVAL:
		evaluate(c, width, height, out);
		return;
	case REFRAIN_AUGMENT_FIT:
		fit_crop(c, width, height, out);
		return;
	case REFRAIN_AUGMENT_IOU:
		out->box = (struct rect){0, 0, width, height};
		crop_iou(seed, boxes, count, &out->box);
		use_whole_box(out);
		draw_rest(c, seed, out);
		return;
	default:
		out->box = (struct rect){0, 0, width, height};
		use_whole_box(out);
	}
}

/* Returns the denominator of the smallest scale for a crop of this size. */
static unsigned denom_of(
	const struct augment_config *c, double width, double height)
{
	unsigned denom = 8;

	while (denom > 1 &&
		(width < (double)c->width * denom ||
			height < (double)c->height * denom))
		denom /= 2;
	return denom;
}

/* Compute lower limits for the sides of the box. They hold for any draw of area
 * and aspect ratio, for the centre crop that is used if all draws fail, and for
 * any crop by boxes. */
static void least_box(const struct augment_config *c, uint32_t width,
	uint32_t height, double *least_width, double *least_height)
{
	double area = (double)width * height * c->area_min;
	struct rect centre;

	if (c->augment == REFRAIN_AUGMENT_IOU) {
		*least_width = floor(IOU_SIDE_LEAST * width);
		*least_height = floor(IOU_SIDE_LEAST * height);
		return;
	}
	centre_box(c, width, height, &centre);
	*least_width = floor(sqrt(area * c->aspect_min) + 0.5);
	*least_height = floor(sqrt(area / c->aspect_max) + 0.5);
	if (centre.width < *least_width)
		*least_width = centre.width;
	if (centre.height < *least_height)
		*least_height = centre.height;
}

unsigned crop_denom(const struct augment_config *c, const struct crop *crop,
	uint32_t width, uint32_t height)
{
	double least_width, least_height;

	switch (c->scale) {
	case SCALE_EXACT:
		return 1;
	case SCALE_BY_CROP:
		return denom_of(c, crop->width, crop->height);
	case SCALE_BY_IMAGE:
		break;
	}
	least_box(c, width, height, &least_width, &least_height);
	return denom_of(c, least_width, least_height);
}

static void join(uint32_t *start, uint32_t *size, uint32_t other_start,
	uint32_t other_size)
{
	uint32_t end = *start + *size, other_end = other_start + other_size;

	*start = *start < other_start ? *start : other_start;
	*size = (end > other_end ? end : other_end) - *start;
}

void crop_union(struct rect *to, const struct crop *crop)
{
	const struct rect *box = &crop->box;

	if (to->width == 0) {
		*to = *box;
		return;
	}
	join(&to->x, &to->width, box->x, box->width);
	join(&to->y, &to->height, box->y, box->height);
}
