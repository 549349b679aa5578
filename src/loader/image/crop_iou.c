/* SPDX-License-Identifier: MIT */
/*
 * The random crop of the object detector SSD: it contains the centre of a box
 * that it overlaps sufficiently. Unlike torchvision's implementation, this one
 * always ends: after ROUNDS thresholds with TRIALS crops each. Only additions,
 * multiplications and divisions of doubles are used, so that a seed gives the
 * same crop on every machine. Any thread; no state.
 */
#include "loader/image/crop_impl.h"

#define ROUNDS 8
#define TRIALS 40
#define ASPECT_MOST 2.0

static const double thresholds[] = {0, 0.1, 0.3, 0.5, 0.7, 0.9};

#define THRESHOLDS (sizeof(thresholds) / sizeof(thresholds[0]))

/* Draw one axis of a crop: a side of 0.3 to 1 times the image's side, at a
 * random position in the image. */
static void draw_axis(uint64_t seed, unsigned n, uint32_t image,
	uint32_t *start, uint32_t *size)
{
	double share =
		IOU_SIDE_LEAST + (1 - IOU_SIDE_LEAST) * crop_uniform(seed, n);

	*size = (uint32_t)(image * share);
	*start = crop_integer(seed, n + 1, image - *size + 1);
}

static bool is_slim(const struct rect *r)
{
	double aspect = (double)r->width / r->height;

	return !(aspect >= 1 / ASPECT_MOST && aspect <= ASPECT_MOST);
}

/* Returns the length that two intervals have in common. */
static double common_length(double a0, double a1, double b0, double b1)
{
	double low = a0 > b0 ? a0 : b0, high = a1 < b1 ? a1 : b1;

	return high > low ? high - low : 0;
}

/* Does the crop contain the centre of the box, and is the intersection over
 * union of the two at least the threshold? */
static bool shows_box(
	const struct rect *r, const struct box *b, double threshold)
{
	double x0 = r->x, x1 = x0 + r->width, y0 = r->y, y1 = y0 + r->height;
	double x = ((double)b->x0 + b->x1) / 2, y = ((double)b->y0 + b->y1) / 2;
	double both, either;

	if ((b->flags & BOX_CROWD) || !(x >= x0 && x < x1 && y >= y0 && y < y1))
		return false;
	both = common_length(x0, x1, b->x0, b->x1) *
		common_length(y0, y1, b->y0, b->y1);
	either = (double)r->width * r->height +
		((double)b->x1 - b->x0) * ((double)b->y1 - b->y0) - both;
	return both >= threshold * either;
}

static bool shows_any(const struct rect *r, const struct box *boxes,
	uint32_t count, double threshold)
{
	for (uint32_t i = 0; i < count; i++)
		if (shows_box(r, &boxes[i], threshold))
			return true;
	return false;
}

void crop_iou(
	uint64_t seed, const struct box *boxes, uint32_t count, struct rect *to)
{
	uint32_t width = to->width, height = to->height;
	unsigned n = DRAW_IOU;

	for (unsigned round = 0; count > 0 && round < ROUNDS; round++) {
		uint32_t which = crop_integer(seed, n++, THRESHOLDS + 1);

		if (which == THRESHOLDS)
			return;
		for (unsigned i = 0; i < TRIALS; i++, n += 4) {
			struct rect r;

			draw_axis(seed, n, width, &r.x, &r.width);
			draw_axis(seed, n + 2, height, &r.y, &r.height);
			if (r.width == 0 || r.height == 0 || is_slim(&r) ||
				!shows_any(&r, boxes, count, thresholds[which]))
				continue;
			*to = r;
			return;
		}
	}
}
