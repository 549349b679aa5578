/* SPDX-License-Identifier: MIT */
/*
 * Maps stored pixels to upright ones. Each of EXIF's eight orientations is a
 * transposition and two mirrorings, some of which may be absent, in this order.
 * Any thread; no state.
 */
#include <string.h>

#include "loader/image/decode_impl.h"

#define PIXEL_BYTES ((size_t)3)

bool turn_transposes(uint8_t orientation)
{
	return orientation >= 5;
}

bool turn_flips_x(uint8_t orientation)
{
	return orientation == 2 || orientation == 3 || orientation == 6 ||
		orientation == 7;
}

bool turn_flips_y(uint8_t orientation)
{
	return orientation == 3 || orientation == 4 || orientation == 7 ||
		orientation == 8;
}

static void flip(uint8_t orientation, const struct image *of, struct rect *r)
{
	if (turn_flips_x(orientation))
		r->x = of->full_width - r->x - r->width;
	if (turn_flips_y(orientation))
		r->y = of->full_height - r->y - r->height;
}

static struct rect transpose(uint8_t orientation, const struct rect *r)
{
	struct rect t = {r->y, r->x, r->height, r->width};

	return turn_transposes(orientation) ? t : *r;
}

struct rect turn_stored(uint8_t orientation, const struct image *out)
{
	struct rect r = {out->x, out->y, out->width, out->height};

	flip(orientation, out, &r);
	return transpose(orientation, &r);
}

void turn_upright(
	uint8_t orientation, const struct rect *stored, struct image *out)
{
	struct rect r = transpose(orientation, stored);

	flip(orientation, out, &r);
	out->x = r.x;
	out->y = r.y;
	out->width = r.width;
	out->height = r.height;
}

/* Where the stored pixels go in the upright image: the address of the first
 * one, and the distances in bytes from one stored pixel to the next and from
 * one stored row to the next. */
struct path {
	uint8_t *start;
	ptrdiff_t pixel, row;
};

static struct path path_of(uint8_t orientation, const struct image *out)
{
	ptrdiff_t across = (ptrdiff_t)PIXEL_BYTES;
	ptrdiff_t down = (ptrdiff_t)out->stride_bytes;
	struct path p = {.start = out->data};

	if (turn_flips_x(orientation)) {
		p.start += (out->width - 1) * PIXEL_BYTES;
		across = -across;
	}
	if (turn_flips_y(orientation)) {
		p.start += (out->height - 1) * out->stride_bytes;
		down = -down;
	}
	p.pixel = turn_transposes(orientation) ? down : across;
	p.row = turn_transposes(orientation) ? across : down;
	return p;
}

/* Copy transposed rows. The outer loop is over stored columns, because each
 * becomes a row. */
static void put_columns(const struct path *p, const uint8_t *rows,
	size_t stride_bytes, uint32_t width, uint32_t count)
{
	for (uint32_t x = 0; x < width; x++) {
		uint8_t *to = p->start + p->pixel * (ptrdiff_t)x;

		for (uint32_t y = 0; y < count; y++)
			memcpy(to + p->row * (ptrdiff_t)y,
				rows + y * stride_bytes + x * PIXEL_BYTES,
				PIXEL_BYTES);
	}
}

static void put_row(
	uint8_t *to, ptrdiff_t step, const uint8_t *from, uint32_t width)
{
	if (step > 0) {
		memcpy(to, from, width * PIXEL_BYTES);
		return;
	}
	for (uint32_t x = 0; x < width; x++)
		memcpy(to + step * (ptrdiff_t)x, from + x * PIXEL_BYTES,
			PIXEL_BYTES);
}

void turn_rows(uint8_t orientation, const uint8_t *rows, size_t stride_bytes,
	uint32_t width, uint32_t first, uint32_t count, const struct image *out)
{
	struct path p = path_of(orientation, out);

	p.start += p.row * (ptrdiff_t)first;
	if (turn_transposes(orientation)) {
		put_columns(&p, rows, stride_bytes, width, count);
		return;
	}
	for (uint32_t y = 0; y < count; y++)
		put_row(p.start + p.row * (ptrdiff_t)y, p.pixel,
			rows + y * stride_bytes, width);
}

/* Returns a * b / 255, rounded to nearest. */
static uint8_t scale_255(unsigned a, unsigned b)
{
	return (uint8_t)((a * b + 127) / 255);
}

void cmyk_to_rgb(uint8_t *pixels, size_t count, bool inverted)
{
	unsigned mask = inverted ? 0 : 255;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *from = pixels + 4 * i;
		uint8_t *to = pixels + PIXEL_BYTES * i;
		unsigned white = from[3] ^ mask;

		for (unsigned c = 0; c < 3; c++)
			to[c] = scale_255(from[c] ^ mask, white);
	}
}
