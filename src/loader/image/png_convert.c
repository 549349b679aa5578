/* SPDX-License-Identifier: MIT */
/*
 * Converts the samples of PNG rows to RGB of 8 bits, as PIL's convert("RGB")
 * does: alpha and transparent colours are dropped, and samples of 16 bits are
 * reduced to their upper 8 bits, except that grey samples of 16 bits are
 * clipped at 255. For masks, samples become ids without a change. Any thread;
 * no state.
 */
#include <string.h>

#include "loader/image/png_impl.h"

/* Returns sample i of a row with samples of 1, 2, 4 or 8 bits. */
static unsigned bits_at(const uint8_t *row, uint32_t i, unsigned depth)
{
	uint64_t bit = (uint64_t)i * depth;

	return row[bit / 8] >> (8 - depth - bit % 8) & ((1U << depth) - 1);
}

static void put_grey(uint8_t *to, unsigned grey)
{
	to[0] = to[1] = to[2] = (uint8_t)grey;
}

static void grey_to_rgb(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	unsigned scale = 255 / ((1U << h->depth) - 1);

	for (uint32_t i = 0; i < n; i++)
		put_grey(to + 3 * (size_t)i,
			scale * bits_at(row, first + i, h->depth));
}

static void grey16_to_rgb(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	(void)h;
	row += 2 * (size_t)first;
	for (size_t i = 0; i < n; i++)
		put_grey(to + 3 * i, row[2 * i] ? 255 : row[2 * i + 1]);
}

static void palette_to_rgb(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	for (uint32_t i = 0; i < n; i++)
		memcpy(to + 3 * (size_t)i,
			h->palette[bits_at(row, first + i, h->depth)], 3);
}

static void grey_alpha_to_rgb(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	size_t step = 2 * (size_t)h->depth / 8;

	row += step * first;
	for (size_t i = 0; i < n; i++)
		put_grey(to + 3 * i, row[step * i]);
}

/* Convert RGB with or without alpha, of 8 or 16 bits. */
static void colour_to_rgb(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	size_t sample = h->depth / 8;
	size_t step = sample * (h->color == PNG_RGB ? 3 : 4);

	row += step * first;
	if (step == 3) {
		memcpy(to, row, 3 * (size_t)n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < 3; c++)
			to[3 * i + c] = row[step * i + sample * c];
}

static void bits_to_ids(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)bits_at(row, first + i, h->depth);
}

static void wide_to_ids(const struct png_header *h, const uint8_t *row,
	uint32_t first, uint32_t n, uint8_t *to)
{
	(void)h;
	row += 2 * (size_t)first;
	for (size_t i = 0; i < n; i++) {
		uint16_t id = (uint16_t)(row[2 * i] << 8 | row[2 * i + 1]);

		memcpy(to + 2 * i, &id, sizeof(id));
	}
}

unsigned png_id_bytes(const struct png_header *h)
{
	if (h->color != PNG_GREY && h->color != PNG_PALETTE)
		return 0;
	return h->depth == 16 ? 2 : 1;
}

png_convert_fn *png_to_ids(const struct png_header *h)
{
	return png_id_bytes(h) == 2 ? wide_to_ids : bits_to_ids;
}

png_convert_fn *png_to_rgb(const struct png_header *h)
{
	switch (h->color) {
	case PNG_GREY:
		return h->depth == 16 ? grey16_to_rgb : grey_to_rgb;
	case PNG_PALETTE:
		return palette_to_rgb;
	case PNG_GREY_ALPHA:
		return grey_alpha_to_rgb;
	default:
		return colour_to_rgb;
	}
}
