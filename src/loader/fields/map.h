/* SPDX-License-Identifier: MIT */
/* Maps the fields of an example by the crop of a serving. One formula holds for
 * all fields: a point (px, py) of the image is at (px - x) * W / width and (py
 * - y) * H / height of a sample of W x H, before the flip. Pure functions that
 * compute with doubles; the results do not depend on the machine. Any thread.
 */
#ifndef FIELDS_MAP_H
#define FIELDS_MAP_H

#include "loader/fields/fields.h"
#include "loader/image/box.h"

/* The crop of a serving, in pixels of the upright image. It may exceed the
 * image. */
struct field_view {
	double x, y, width, height;
	uint32_t image_width, image_height;
	uint32_t sample_width, sample_height;
	bool flip; /* exchange left and right */
};

/* Where the mapped rows are written. Each array has room for the option `max`
 * of the field. */
struct map_out {
	float *values;	/* 4 numbers for each box, or 3 for each point */
	int32_t *label; /* classes of boxes, or NULL */
	int32_t *which; /* for each row, its number in the annotation */
	uint32_t count; /* number of rows that were written */
	uint32_t cut;	/* number of rows for which there was no room */
};

/*
 * Map boxes, in their order, to x0 y0 x1 y1 in pixels of the sample. A box is
 * kept if its centre is in the crop (or on its left or top edge); with
 * KEEP_VISIBLE, if at least min_visible of its area is in the crop, and more
 * than nothing. A kept box is cut at the edges of the crop and of the image,
 * and dropped if a side is then shorter than min_side, or 0. Crowds are dropped
 * unless the field keeps them.
 */
void map_boxes(const struct field_def *f, const struct field_view *v,
	const struct box *boxes, uint32_t count, struct map_out *out);

/* Map points, each to x y v, with v of the annotation. A point outside of the
 * crop, or with v = 0, becomes 0 0 0. A flip exchanges the points that are
 * twins. A row without any point in the crop is dropped. `points` has `count`
 * rows. */
void map_points(const struct field_def *f, const struct field_view *v,
	const float *points, uint32_t count, struct map_out *out);

/* A decoded region of a mask. */
struct id_image {
	const void *data;
	size_t stride_bytes;
	unsigned id_bytes; /* bytes of an id, 1 or 2 */
	/* position and size of the region in the image */
	uint32_t x, y, width, height;
};

/* For each pixel of the sample, take the id at the pixel's centre; outside of
 * the image, `fill`. `out` has sample_height x sample_width ids of the field's
 * type. Returns 0, -ERANGE if an id does not fit the type, or -EINVAL if the
 * region does not have a pixel that is needed. */
int map_mask(const struct field_def *f, const struct field_view *v,
	const struct id_image *in, void *out);

/* Copy class numbers or bytes, which do not depend on the crop: the first `max`
 * of `count` rows of row_bytes. Returns the number of rows that were not
 * copied. */
uint32_t map_copy(const struct field_def *f, const void *rows, size_t row_bytes,
	uint32_t count, void *out);

#endif
