/* SPDX-License-Identifier: MIT */
/*
 * Makes samples from images, two rows at a time. First the vertical filter
 * writes rows that fit into the first-level cache. Then the horizontal filter,
 * whose table also mirrors the row if the sample is flipped, makes the pixels,
 * and they are converted to the type of the sample. Between the filters, values
 * have 7 fractional bits, or fewer if 31 bits do not suffice.
 */
#include "loader/image/augment.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/emitter_impl.h"
#include "loader/image/filter_impl.h"
#include "loader/image/jitter_impl.h"
#include "loader/image/kernels_impl.h"
#include "refrain/loader.h"

struct augmenter {
	struct augment_config config;
	const struct kernels *kernels;
	struct emitter emitter;
	struct filter horizontal, vertical;
	/* Pointers to the rows of the image that one row of the sample needs */
	const uint8_t **taps;
	int16_t *mixed; /* two rows of results of the vertical filter */
	/* Rows of u8 pixels. Not used if they are written into the sample
	 * itself */
	uint8_t *pixels;
	size_t taps_room, mixed_room, pixels_room;
};

/* The part of an image that the filters of a crop may read, and the extent
 * within it that is resampled. */
struct crop_source {
	const uint8_t *data; /* the first pixel of the part */
	size_t stride_bytes;
	struct extent across, down;
};

size_t augment_sample_bytes(const struct augment_config *c)
{
	size_t values = (size_t)c->height * c->width * 3;

	if (c->type == REFRAIN_U8)
		return values;
	return values * (c->type == REFRAIN_F16 ? 2 : 4);
}

int augmenter_new(struct augmenter **out, const struct augment_config *c)
{
	struct augmenter *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return -ENOMEM;
	a->config = *c;
	a->kernels = kernels_best();
	emitter_init(&a->emitter, c);
	return 0;
}

void augmenter_trim(struct augmenter *a)
{
	filter_release(&a->horizontal);
	filter_release(&a->vertical);
	free(a->taps);
	free(a->mixed);
	free(a->pixels);
	a->taps = NULL;
	a->mixed = NULL;
	a->pixels = NULL;
	a->taps_room = a->mixed_room = a->pixels_room = 0;
}

void augmenter_free(struct augmenter *a)
{
	if (a)
		augmenter_trim(a);
	free(a);
}

size_t augmenter_memory_bytes(const struct augmenter *a)
{
	return sizeof(*a) + filter_memory_bytes(&a->horizontal) +
		filter_memory_bytes(&a->vertical) +
		a->taps_room * sizeof(*a->taps) +
		a->mixed_room * sizeof(*a->mixed) + a->pixels_room;
}

/* Compute one axis of a box, rounded outward to whole pixels. The decoded image
 * has `size` pixels on this axis, the first of which is pixel `origin` of the
 * full image. Returns the index in the decoded image of the first pixel that
 * may be read, or -EINVAL if the box is not within the decoded image. */
static int64_t axis(unsigned denom, uint32_t origin, uint32_t size,
	uint32_t box_start, uint32_t box_size, double start, double length,
	struct extent *out)
{
	uint64_t first = box_start / denom;
	uint64_t end = ((uint64_t)box_start + box_size + denom - 1) / denom;

	if (first < origin || end > (uint64_t)origin + size || end <= first)
		return -EINVAL;
	out->start = start / denom - (double)first;
	out->length = length / denom;
	out->limit = (uint32_t)(end - first);
	/* The condition is a negation, so that it is also true if a value is a
	 * NaN. */
	if (!(out->start >= 0 && out->length > 0 &&
		    out->start + out->length <= out->limit + 1e-6))
		return -EINVAL;
	return (int64_t)(first - origin);
}

static int source_of(const struct image *in, const struct crop *crop,
	struct crop_source *out)
{
	const struct rect *b = &crop->box;
	bool whole = crop->inner.width == 0;
	int64_t x = axis(in->denom, in->x, in->width, b->x, b->width,
		whole ? crop->x : b->x, whole ? crop->width : b->width,
		&out->across);
	int64_t y = axis(in->denom, in->y, in->height, b->y, b->height,
		whole ? crop->y : b->y, whole ? crop->height : b->height,
		&out->down);

	if (x < 0 || y < 0)
		return -EINVAL;
	out->data = in->data + (size_t)y * in->stride_bytes + 3 * (size_t)x;
	out->stride_bytes = in->stride_bytes;
	return 0;
}

/* Returns the number of elements of one row after the vertical filter. */
static size_t mixed_row(const struct augmenter *a, const struct crop_source *s)
{
	return 3 * ((size_t)s->across.limit + 2 * a->horizontal.pairs) +
		KERNEL_SLACK;
}

static int prepare(struct augmenter *a, const struct crop_source *s,
	const struct rect *part, bool flip, size_t pixels_bytes)
{
	int rc;

	rc = filter_make(&a->horizontal, &s->across, part->width, flip);
	if (rc == 0)
		rc = filter_make(&a->vertical, &s->down, part->height, false);
	if (rc == 0)
		rc = grow(&a->taps, &a->taps_room,
			2 * (size_t)a->vertical.pairs, sizeof(*a->taps));
	if (rc == 0)
		rc = grow(&a->mixed, &a->mixed_room, 2 * mixed_row(a, s),
			sizeof(*a->mixed));
	if (rc == 0)
		rc = grow(&a->pixels, &a->pixels_room, pixels_bytes, 1);
	return rc;
}

/* Returns the number of fractional bits between the filters. 255.5 shifted left
 * by these bits and by the bits of the horizontal weights must be below
 * 2^31. */
static unsigned fraction_bits(const struct augmenter *a)
{
	unsigned left = 23 - a->horizontal.bits;

	return left < 7 ? left : 7;
}

/*
 * Filter one row of the sample vertically. This also adds 1/2 to each value, so
 * that the horizontal filter rounds to nearest: its weights sum to 1, so it
 * passes the 1/2 on unchanged.
 */
static void mix_row(struct augmenter *a, const struct crop_source *s,
	uint32_t y, int16_t *out)
{
	const struct filter *f = &a->vertical;
	struct mix mix = {.rows = a->taps, .pairs = f->pairs};
	uint32_t last = s->down.limit - 1;

	for (uint32_t j = 0; j < 2 * f->pairs; j++) {
		uint32_t row = f->start[y] + j;

		a->taps[j] =
			s->data + s->stride_bytes * (row < last ? row : last);
	}
	mix.weights = f->weights + 2 * (size_t)f->pairs * y;
	mix.shift = f->bits - fraction_bits(a);
	mix.round = (1 << (f->bits - 1)) + (1 << mix.shift >> 1);
	a->kernels->vertical(&mix, 3 * (size_t)s->across.limit, out);
}

/* Make rows y and y + 1 as u8 RGB. If y is the last row, make it twice. */
static void make_rows(struct augmenter *a, const struct crop_source *s,
	uint32_t y, uint8_t *const out[2])
{
	int16_t *in[2] = {a->mixed, a->mixed};
	unsigned shift = a->horizontal.bits + fraction_bits(a);

	mix_row(a, s, y, in[0]);
	if (out[1] != out[0]) {
		in[1] += mixed_row(a, s);
		mix_row(a, s, y + 1, in[1]);
	}
	a->kernels->horizontal(
		&a->horizontal, shift, (const int16_t *const *)in, out);
}

/* Make all rows of a part of the sample. */
static void resize(struct augmenter *a, const struct crop_source *s,
	const struct rect *part, uint8_t *to)
{
	size_t row = 3 * (size_t)a->config.width;

	to += part->y * row + 3 * (size_t)part->x;
	for (uint32_t y = 0; y < part->height; y += 2) {
		uint8_t *out[2] = {to + y * row, to + y * row};

		if (y + 1 < part->height)
			out[1] += row;
		make_rows(a, s, y, out);
	}
}

/* Make all rows of the sample, and convert each row to its type while it is in
 * the cache. */
static void resize_and_emit(
	struct augmenter *a, const struct crop_source *s, void *to)
{
	uint8_t *out[2] = {a->pixels, a->pixels};

	for (uint32_t y = 0; y < a->config.height; y += 2) {
		bool both = y + 1 < a->config.height;

		out[1] = a->pixels + (both ? 3 * (size_t)a->config.width : 0);
		make_rows(a, s, y, out);
		a->kernels->emit(&a->emitter, out[0], y, to);
		if (both)
			a->kernels->emit(&a->emitter, out[1], y + 1, to);
	}
}

/* Returns the part of the sample that shows the image. */
static struct rect part_of(
	const struct augment_config *c, const struct crop *crop)
{
	if (crop->inner.width)
		return crop->inner;
	return (struct rect){0, 0, c->width, c->height};
}

/* Fill the rest of the sample around this part. */
static void fill_around(struct augmenter *a, const struct rect *part, void *out)
{
	uint32_t width = a->config.width, height = a->config.height;
	uint32_t right = part->x + part->width, low = part->y + part->height;
	const struct rect around[] = {
		{0, 0, width, part->y},
		{0, low, width, height - low},
		{0, part->y, part->x, part->height},
		{right, part->y, width - right, part->height},
	};

	for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		emitter_fill(&a->emitter, &around[i], out);
}

/* Convert u8 pixels to a sample. */
static void emit_rows(struct augmenter *a, const uint8_t *rgb, void *out)
{
	size_t row = 3 * (size_t)a->config.width;

	for (uint32_t y = 0; y < a->config.height; y++)
		a->kernels->emit(&a->emitter, rgb + y * row, y, out);
}

/* Fill the places that do not show the image. In a normalised sample, the
 * filling is exactly 0, which no u8 value may give. */
static void fill_places(struct augmenter *a, const struct crop *crop, void *out)
{
	struct rect part = part_of(&a->config, crop);

	if (crop->inner.width)
		fill_around(a, &part, out);
	if (crop->cutout_width)
		emitter_fill(&a->emitter,
			&(struct rect){crop->cutout_x, crop->cutout_y,
				crop->cutout_width, crop->cutout_height},
			out);
}

static bool is_pixels(const struct augment_config *c)
{
	return c->type == REFRAIN_U8 && c->layout == REFRAIN_NHWC;
}

void augment_finish(struct augmenter *a, const struct crop *crop,
	const uint8_t *pixels, void *out)
{
	const struct augment_config *c = &a->config;

	if (is_pixels(c))
		memcpy(out, pixels, augment_sample_bytes(c));
	else
		emit_rows(a, pixels, out);
	fill_places(a, crop, out);
}

int augment(struct augmenter *a, const struct image *in,
	const struct crop *crop, void *out)
{
	const struct augment_config *c = &a->config;
	size_t row = 3 * (size_t)c->width,
	       pixels = (size_t)c->height * c->width;
	bool in_place = is_pixels(c);
	bool jittered = jitter_needed(crop->jitter);
	bool at_once = !jittered && !crop->inner.width;
	struct rect part = part_of(c, crop);
	uint8_t *rgb = out;
	struct crop_source s;
	int rc;

	rc = source_of(in, crop, &s);
	if (rc == 0)
		rc = prepare(a, &s, &part, crop->flip,
			in_place ? 0
				 : row * (at_once ? 2 : c->height) +
					KERNEL_SLACK);
	if (rc < 0)
		return rc;
	if (!in_place && at_once) {
		resize_and_emit(a, &s, out);
	} else {
		rgb = in_place ? out : a->pixels;
		resize(a, &s, &part, rgb);
		if (jittered)
			jitter(crop->jitter, rgb, pixels);
		if (!in_place)
			emit_rows(a, rgb, out);
	}
	fill_places(a, crop, out);
	return 0;
}
