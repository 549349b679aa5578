/* SPDX-License-Identifier: MIT */
/* Maps boxes, points and rows; see map.h. No state; any thread. */
#include "loader/fields/map.h"

#include <refrain/loader.h>
#include <string.h>

/* One axis of a view, without the flip. */
struct axis {
	double start, length;
	double low, high; /* the part of the crop that is in the image */
	double sample;
};

static struct axis axis_of(
	double start, double length, uint32_t image, uint32_t sample)
{
	struct axis a = {.start = start, .length = length, .sample = sample};

	a.low = start > 0 ? start : 0;
	a.high = start + length < image ? start + length : image;
	return a;
}

static double in_sample(const struct axis *a, double at)
{
	double to = (at - a->start) * a->sample / a->length;

	if (to < 0)
		return 0;
	return to > a->sample ? a->sample : to;
}

static double clipped(const struct axis *a, double at)
{
	if (at < a->low)
		return a->low;
	return at > a->high ? a->high : at;
}

static bool contains(const struct axis *a, double at)
{
	return at >= a->start && at < a->start + a->length;
}

/* -- Boxes ----------------------------------------------------------------- */

static bool is_kept(const struct field_def *f, const struct box *b,
	const struct axis *ax, const struct axis *ay)
{
	double width = (double)b->x1 - b->x0, height = (double)b->y1 - b->y0;
	double seen;

	if (f->keep == KEEP_CENTRE)
		return contains(ax, ((double)b->x0 + b->x1) / 2) &&
			contains(ay, ((double)b->y0 + b->y1) / 2);
	seen = (clipped(ax, b->x1) - clipped(ax, b->x0)) *
		(clipped(ay, b->y1) - clipped(ay, b->y0));
	return seen > 0 && seen >= f->min_visible * (width * height);
}

/* Map a box to the sample. Returns false if too little of it is in the crop. */
static bool map_box(const struct field_def *f, const struct field_view *v,
	const struct box *b, const struct axis *ax, const struct axis *ay,
	float out[4])
{
	double x0 = in_sample(ax, clipped(ax, b->x0));
	double x1 = in_sample(ax, clipped(ax, b->x1));
	double y0 = in_sample(ay, clipped(ay, b->y0));
	double y1 = in_sample(ay, clipped(ay, b->y1));

	/* This form of the condition also drops a NaN. */
	if (!(x1 > x0 && y1 > y0 && x1 - x0 >= f->min_side &&
		    y1 - y0 >= f->min_side))
		return false;
	out[0] = (float)(v->flip ? ax->sample - x1 : x0);
	out[1] = (float)y0;
	out[2] = (float)(v->flip ? ax->sample - x0 : x1);
	out[3] = (float)y1;
	return true;
}

void map_boxes(const struct field_def *f, const struct field_view *v,
	const struct box *boxes, uint32_t count, struct map_out *out)
{
	struct axis ax =
		axis_of(v->x, v->width, v->image_width, v->sample_width);
	struct axis ay =
		axis_of(v->y, v->height, v->image_height, v->sample_height);

	out->count = out->cut = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct box *b = &boxes[i];
		float box[4];

		if (((b->flags & BOX_CROWD) && !f->crowd) ||
			!is_kept(f, b, &ax, &ay) ||
			!map_box(f, v, b, &ax, &ay, box))
			continue;
		if (out->count == f->max) {
			out->cut++;
			continue;
		}
		memcpy(out->values + 4 * (size_t)out->count, box, sizeof(box));
		if (out->label)
			out->label[out->count] = b->label;
		out->which[out->count++] = (int32_t)i;
	}
}

/* -- Points ---------------------------------------------------------------- */

/* Map the points of a row. Returns the number of points in the crop. */
static uint32_t map_row(const struct field_def *f, const struct field_view *v,
	const float *from, const struct axis *ax, const struct axis *ay,
	float *out)
{
	uint32_t left = 0;

	memset(out, 0, f->points * 3 * sizeof(*out));
	for (uint32_t i = 0; i < f->points; i++) {
		const float *p = from + 3 * (size_t)i;
		float *to = out + 3 * (size_t)(v->flip ? f->twin[i] : i);
		double x;

		if (!(p[2] > 0) || !contains(ax, p[0]) || !contains(ay, p[1]))
			continue;
		x = in_sample(ax, p[0]);
		to[0] = (float)(v->flip ? ax->sample - x : x);
		to[1] = (float)in_sample(ay, p[1]);
		to[2] = p[2];
		left++;
	}
	return left;
}

void map_points(const struct field_def *f, const struct field_view *v,
	const float *points, uint32_t count, struct map_out *out)
{
	struct axis ax =
		axis_of(v->x, v->width, v->image_width, v->sample_width);
	struct axis ay =
		axis_of(v->y, v->height, v->image_height, v->sample_height);
	size_t row = 3 * (size_t)f->points;
	float mapped[3 * FIELD_POINTS_MAX];

	out->count = out->cut = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (map_row(f, v, points + row * i, &ax, &ay, mapped) == 0)
			continue;
		if (out->count == f->max) {
			out->cut++;
			continue;
		}
		memcpy(out->values + row * out->count, mapped,
			row * sizeof(*mapped));
		out->which[out->count++] = (int32_t)i;
	}
}

/* -- Other rows ------------------------------------------------------------ */

uint32_t map_copy(const struct field_def *f, const void *rows, size_t row_bytes,
	uint32_t count, void *out)
{
	uint32_t n = count < f->max ? count : f->max;

	if (n > 0)
		memcpy(out, rows, n * row_bytes);
	return count - n;
}
