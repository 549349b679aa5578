/* SPDX-License-Identifier: MIT */
/*
 * Normalises values and converts them to the type of the sample. A channel has
 * only 256 different values, so all results are computed once, with the same
 * arithmetic as in the SIMD versions.
 */
#include "loader/image/emitter_impl.h"

#include <string.h>

#include "refrain/loader.h"

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Returns v >> shift, rounded to nearest; halves are rounded to even. */
static uint32_t shift_rounded(uint32_t v, unsigned shift)
{
	uint32_t half = UINT32_C(1) << (shift - 1);
	uint32_t rest = v & (2 * half - 1), out = v >> shift;

	return out + (rest > half || (rest == half && (out & 1)));
}

uint16_t half_of(float value)
{
	uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
	uint32_t magnitude = bits & 0x7fffffff;
	uint32_t exponent = magnitude >> 23;
	uint32_t fraction = (magnitude & 0x7fffff) | 0x800000;

	/* A quiet NaN with the upper bits of the payload */
	if (magnitude > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
	if (exponent >= 127 + 16)
		return (uint16_t)(sign | 0x7c00);
	/* If rounding carries out of the fraction, it correctly increments the
	 * exponent. */
	if (exponent >= 127 - 14)
		return (uint16_t)(sign |
			shift_rounded(magnitude - ((127 - 15) << 23), 13));
	if (exponent < 127 - 25)
		return (uint16_t)sign;
	return (uint16_t)(sign | shift_rounded(fraction, 126 - exponent));
}

static uint32_t typed(int type, float value)
{
	return type == REFRAIN_F16 ? half_of(value) : bits_of(value);
}

static void init_channel(
	struct emitter *e, const struct augment_config *c, unsigned channel)
{
	double mean = c->mean[channel], std = c->std[channel];
	float factor, add;

	factor = (float)(c->normalise ? 1 / (255 * std) : 1.0 / 255);
	add = (float)(c->normalise ? -mean / std : 0);
	e->factor[channel] = factor;
	e->add[channel] = add;
	for (unsigned v = 0; v < 256; v++)
		e->table[channel][v] = e->type == REFRAIN_U8
			? v
			: typed(e->type, (float)v * factor + add);
	if (e->type == REFRAIN_U8)
		e->fill[channel] = (uint32_t)(mean * 255 + 0.5);
	else
		e->fill[channel] =
			typed(e->type, c->normalise ? 0 : (float)mean);
}

void emitter_init(struct emitter *e, const struct augment_config *c)
{
	e->type = c->type;
	e->layout = c->layout;
	e->width = c->width;
	e->height = c->height;
	for (unsigned channel = 0; channel < 3; channel++)
		init_channel(e, c, channel);
}

static void fill_row(const struct emitter *e, const struct rect *part,
	uint32_t y, void *sample)
{
	size_t at = (size_t)y * e->width + part->x;
	size_t plane = (size_t)e->width * e->height;
	bool planes = e->layout == REFRAIN_NCHW;

	for (unsigned channel = 0; channel < 3; channel++)
		for (size_t i = at; i < at + part->width; i++)
			emit_value(e->type,
				planes ? channel * plane + i : 3 * i + channel,
				e->fill[channel], sample);
}

void emitter_fill(
	const struct emitter *e, const struct rect *part, void *sample)
{
	for (uint32_t i = 0; i < part->height; i++)
		fill_row(e, part, part->y + i, sample);
}
