/* SPDX-License-Identifier: MIT */
/*
 * Tables of the triangle filter. An augmenter makes two tables for each sample,
 * so a table is made in one pass, without a function call for each output.
 */
#include "loader/image/filter_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int grow(void *p, size_t *room, size_t count, size_t size)
{
	void *now;

	if (count <= *room)
		return 0;
	free(*(void **)p);
	now = calloc(count, size);
	*(void **)p = now;
	*room = now ? count : 0;
	return now ? 0 : -ENOMEM;
}

/*
 * Returns the number of fractional bits of a weight. Weights must fit into 16
 * bits. The centre of an output is at least scale / 2 inside the range, so the
 * raw weights of an output sum to at least 3/4 scale - 1/2 (the 1/2 because
 * pixels are whole), and no raw weight is above 1. Therefore normalised weights
 * of 14 bits always fit, and one more bit fits each time the scale doubles from
 * 4 on. The limit is 22 bits, because 255 times the sum of all weights must fit
 * into 31 bits.
 */
static unsigned filter_bits(double scale)
{
	unsigned bits = 14;

	while (bits < 22 && scale >= 4) {
		scale /= 2;
		bits++;
	}
	return bits;
}

/* Normalise and round `n` weights so that they sum to 1 << bits. The error of
 * rounding is added to the largest weight. */
static void quantise(
	const double *raw, unsigned n, double sum, unsigned bits, int16_t *out)
{
	double factor = (double)(1 << bits) / sum;
	int32_t left = 1 << bits;
	unsigned largest = 0;

	for (unsigned j = 0; j < n; j++) {
		int32_t w = (int32_t)(raw[j] * factor + 0.5);

		out[j] = (int16_t)w;
		left -= w;
		largest = raw[j] > raw[largest] ? j : largest;
	}
	out[largest] = (int16_t)(out[largest] + left);
}

static void make_outputs(
	struct filter *f, const struct extent *extent, bool mirrored)
{
	double scale = extent->length / f->count;
	double support = scale > 1 ? scale : 1, slope = 1 / support;
	unsigned taps = 2 * f->pairs;

	for (unsigned i = 0; i < f->count; i++) {
		unsigned at = mirrored ? f->count - 1 - i : i, n = 0;
		double centre = extent->start + (i + 0.5) * scale, sum = 0;
		double low = centre - support + 0.5, high = low + 2 * support;
		uint32_t first = low < 0 ? 0 : (uint32_t)low;
		uint32_t last =
			high < extent->limit ? (uint32_t)high : extent->limit;
		double away = first + 0.5 - centre;

		for (; first + n < last && n < taps; n++, away += 1) {
			double w = 1 - fabs(away) * slope;

			f->raw[n] = w < 0 ? 0 : w;
			sum += f->raw[n];
		}
		f->start[at] = first;
		quantise(f->raw, n, sum, f->bits,
			f->weights + (size_t)at * taps);
	}
}

int filter_make(struct filter *f, const struct extent *extent, unsigned count,
	bool mirrored)
{
	double scale = extent->length / count;
	size_t padded = ((size_t)count + 3) & ~(size_t)3, window;

	/* An output reads at most ceil(2 support) pixels, because [floor(a),
	 * floor(a + 2 support)) contains at most that many. */
	window = scale > 1 ? (size_t)ceil(2 * scale) : 2;
	window = window < extent->limit ? window : extent->limit;
	f->count = count;
	f->pairs = (unsigned)(window + 1) / 2;
	f->bits = filter_bits(scale);
	window = 2 * (size_t)f->pairs;
	if (grow(&f->start, &f->start_room, padded, sizeof(*f->start)) < 0 ||
		grow(&f->weights, &f->weights_room, padded * window,
			sizeof(*f->weights)) < 0 ||
		grow(&f->raw, &f->raw_room, window, sizeof(*f->raw)) < 0)
		return -ENOMEM;
	memset(f->weights, 0, padded * window * sizeof(*f->weights));
	for (size_t i = count; i < padded; i++)
		f->start[i] = 0;
	make_outputs(f, extent, mirrored);
	return 0;
}

void filter_release(struct filter *f)
{
	free(f->start);
	free(f->weights);
	free(f->raw);
	memset(f, 0, sizeof(*f));
}

size_t filter_memory_bytes(const struct filter *f)
{
	return f->start_room * sizeof(*f->start) +
		f->weights_room * sizeof(*f->weights) +
		f->raw_room * sizeof(*f->raw);
}
