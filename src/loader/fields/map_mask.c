/* SPDX-License-Identifier: MIT */
/* Maps masks, without interpolation; see map.h. No state; any thread. */
#include <errno.h>
#include <math.h>
#include <refrain/loader.h>
#include <string.h>

#include "loader/fields/map.h"

/* Returns the coordinate in the image of the centre of pixel i of the sample;
 * -1 if it is outside. */
static int64_t nearest(double start, double length, uint32_t image,
	uint32_t sample, uint32_t i)
{
	double at = floor(start + (i + 0.5) * length / sample);

	return at >= 0 && at < image ? (int64_t)at : -1;
}

static uint32_t id_at(const struct id_image *in, uint32_t x, uint32_t y)
{
	const uint8_t *p = (const uint8_t *)in->data +
		(size_t)y * in->stride_bytes + (size_t)x * in->id_bytes;
	uint16_t wide;

	if (in->id_bytes == 1)
		return *p;
	memcpy(&wide, p, sizeof(wide));
	return wide;
}

static int put_id(int type, uint32_t id, size_t at, void *out)
{
	switch (type) {
	case REFRAIN_U8:
		((uint8_t *)out)[at] = (uint8_t)id;
		return id > UINT8_MAX ? -ERANGE : 0;
	case REFRAIN_U16:
		((uint16_t *)out)[at] = (uint16_t)id;
		return 0;
	default:
		((int32_t *)out)[at] = (int32_t)id;
		return 0;
	}
}

/* Find the id of a pixel of the sample. Returns -EINVAL if the region does not
 * have that pixel. */
static int find_id(const struct field_def *f, const struct id_image *in,
	int64_t x, int64_t y, uint32_t *id)
{
	*id = f->fill;
	if (x < 0 || y < 0)
		return 0;
	if (x < in->x || x - in->x >= in->width || y < in->y ||
		y - in->y >= in->height)
		return -EINVAL;
	*id = id_at(in, (uint32_t)(x - in->x), (uint32_t)(y - in->y));
	return 0;
}

int map_mask(const struct field_def *f, const struct field_view *v,
	const struct id_image *in, void *out)
{
	size_t at = 0;

	for (uint32_t j = 0; j < v->sample_height; j++) {
		int64_t y = nearest(
			v->y, v->height, v->image_height, v->sample_height, j);

		for (uint32_t i = 0; i < v->sample_width; i++, at++) {
			uint32_t from = v->flip ? v->sample_width - 1 - i : i;
			int64_t x = nearest(v->x, v->width, v->image_width,
				v->sample_width, from);
			uint32_t id;
			int rc = find_id(f, in, x, y, &id);

			if (rc == 0)
				rc = put_id(f->type, id, at, out);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}
