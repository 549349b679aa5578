/* SPDX-License-Identifier: MIT */
/*
 * How the fields of an example follow the crop of a serving. All of them use
 * one formula: a point (px, py) of the image is at (px - x) * W / width and
 * (py - y) * H / height of a sample of W x H, before the flip. Pure functions,
 * in doubles, whose results do not depend on the machine; any thread.
 */
#ifndef FIELDS_MAP_H
#define FIELDS_MAP_H

#include "loader/fields/fields.h"
#include "loader/image/box.h"

/* One serving: the part of the upright image that became the sample. It may
 * exceed the image. */
struct field_view {
	double x, y, width, height;
	uint32_t image_width, image_height;
	uint32_t sample_width, sample_height;
	bool flip; /* left and right */
};

/* Where rows go. Each array has room for `max` rows of the field. */
struct map_out {
	float *values;	/* 4 of a box, 3 for each point of a row */
	int32_t *label; /* boxes; NULL: not wanted */
	int32_t *which; /* the number of the row in the annotation */
	uint32_t count; /* rows that were written */
	uint32_t cut;	/* rows that had no room */
};

/*
 * Boxes, in their order: x0 y0 x1 y1 in pixels of the sample. A box is kept if
 * its centre is in the crop (left and top edge included), or at least
 * min_visible of its area, and more than none, is. It is clipped at the crop
 * and at the image, and dropped if a side is then shorter than min_side, or 0.
 * A crowd is dropped unless the field keeps them.
 */
void map_boxes(const struct field_def *f, const struct field_view *v,
	const struct box *boxes, uint32_t count, struct map_out *out);

/*
 * Points: x y v of each, with v of the annotation; 0 0 0 for a point that is
 * outside of the crop or has v = 0. A flip exchanges twins. A row without any
 * point left is dropped. `points` has `count` rows.
 */
void map_points(const struct field_def *f, const struct field_view *v,
	const float *points, uint32_t count, struct map_out *out);

/* A decoded region of a mask. */
struct id_image {
	const void *data;
	size_t stride_bytes;
	unsigned id_bytes;	      /* 1 or 2 */
	uint32_t x, y, width, height; /* the region */
};

/*
 * Take the id at the centre of each pixel of the sample, and `fill` outside of
 * the image. `out` has sample_height x sample_width ids of the field's type.
 * Returns 0, -ERANGE if an id does not fit the type, or -EINVAL if the region
 * lacks a pixel.
 */
int map_mask(const struct field_def *f, const struct field_view *v,
	const struct id_image *in, void *out);

/* Class numbers and bytes follow no crop: the first `max` of `count` rows of
 * row_bytes are copied. Returns the number of rows that were not. */
uint32_t map_copy(const struct field_def *f, const void *rows, size_t row_bytes,
	uint32_t count, void *out);

#endif
