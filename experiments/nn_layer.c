/* SPDX-License-Identifier: MIT */
/*
 * Computes one layer for the images of one slice, forward and backward. A 3 x 3
 * convolution is a product of matrices: the neighbourhood of each pixel becomes
 * a row of 9 * channels numbers. Three pixels at a time of such a row are
 * adjacent in the image, too, so they are copied at once. The functions use
 * only the memory that the caller passes.
 */
#include "nn_impl.h"

#include <stdbool.h>
#include <string.h>

size_t layer_pixels(const struct layer *l)
{
	size_t side = l->side / l->pool;

	return side * side;
}

size_t layer_numbers(const struct layer *l)
{
	return layer_pixels(l) * l->out;
}

static size_t input_numbers(const struct layer *l)
{
	return (size_t)l->side * l->side * l->in;
}

/* Where to copy between an image and the rows of its neighbourhoods. Pixels
 * outside the image are 0. A strip is three adjacent pixels of one row of the
 * image, or two at a border; the row is above, at or below the row of the pixel
 * whose neighbourhood it is. */
struct strip {
	/* offsets in the image and in the rows; count of numbers */
	size_t picture, columns, numbers;
	/* numbers outside the image, before and after the strip */
	size_t before, after;
};

static struct strip strip_of(
	const struct layer *l, uint32_t y, uint32_t x, uint32_t ky)
{
	size_t in = l->in, left = x > 0, right = x + 1 < l->side;
	size_t row = (size_t)y * l->side + x;

	return (struct strip){
		.columns = row * 9 * in + ky * 3 * in + (left ? 0 : in),
		.picture = ((y + ky - 1) * (size_t)l->side + x - left) * in,
		.numbers = (left + 1 + right) * in,
		.before = left ? 0 : in,
		.after = right ? 0 : in,
	};
}

static bool inside(const struct layer *l, uint32_t y, uint32_t ky)
{
	return y + ky >= 1 && y + ky <= l->side;
}

static void to_columns(
	const struct layer *l, const nn_real *picture, nn_real *columns)
{
	for (uint32_t y = 0; y < l->side; y++)
		for (uint32_t x = 0; x < l->side; x++)
			for (uint32_t ky = 0; ky < 3; ky++) {
				struct strip s = strip_of(l, y, x, ky);
				nn_real *to = columns + s.columns;

				if (!inside(l, y, ky)) {
					memset(to - s.before, 0,
						3 * l->in * sizeof(*to));
					continue;
				}
				memset(to - s.before, 0,
					s.before * sizeof(*to));
				memcpy(to, picture + s.picture,
					s.numbers * sizeof(*to));
				memset(to + s.numbers, 0,
					s.after * sizeof(*to));
			}
}

/* The reverse of to_columns(): add up the numbers that were copied to several
 * places. */
static void from_columns(
	const struct layer *l, const nn_real *columns, nn_real *picture)
{
	memset(picture, 0, input_numbers(l) * sizeof(*picture));
	for (uint32_t y = 0; y < l->side; y++)
		for (uint32_t x = 0; x < l->side; x++)
			for (uint32_t ky = 0; ky < 3; ky++) {
				struct strip s = strip_of(l, y, x, ky);
				const nn_real *from = columns + s.columns;
				nn_real *to = picture + s.picture;

				if (!inside(l, y, ky))
					continue;
				for (size_t i = 0; i < s.numbers; i++)
					to[i] += from[i];
			}
}

/* Returns the first of the four pixels whose maximum becomes pixel (y, x). */
static const size_t *corners(
	const struct layer *l, uint32_t y, uint32_t x, size_t at[4])
{
	size_t row = (size_t)l->side * l->out;

	at[0] = 2 * y * row + (size_t)2 * x * l->out;
	at[1] = at[0] + l->out;
	at[2] = at[0] + row;
	at[3] = at[2] + l->out;
	return at;
}

static void pool_picture(const struct layer *l, const nn_real *convolved,
	nn_real *pooled, uint8_t *from)
{
	uint32_t side = l->side / 2;
	size_t at[4];

	for (uint32_t y = 0; y < side; y++)
		for (uint32_t x = 0; x < side; x++) {
			(void)corners(l, y, x, at);
			for (uint32_t c = 0; c < l->out; c++) {
				const nn_real *p = convolved + c;
				bool a = p[at[1]] > p[at[0]];
				bool b = p[at[3]] > p[at[2]];
				nn_real upper = p[at[0] + a * l->out];
				nn_real lower = p[at[2] + b * l->out];

				pooled[c] = lower > upper ? lower : upper;
				from[c] = lower > upper ? 2 + b : a;
			}
			pooled += l->out;
			from += l->out;
		}
}

static void unpool_picture(const struct layer *l, const nn_real *slope,
	const uint8_t *from, nn_real *convolved)
{
	uint32_t side = l->side / 2;
	size_t at[4];

	for (uint32_t y = 0; y < side; y++)
		for (uint32_t x = 0; x < side; x++) {
			(void)corners(l, y, x, at);
			for (uint32_t k = 0; k < 4; k++)
				for (uint32_t c = 0; c < l->out; c++)
					convolved[at[k] + c] =
						from[c] == k ? slope[c] : 0;
			slope += l->out;
			from += l->out;
		}
}

/* For each channel, add the sum of the numbers and the sum of the products. */
static void add_sums(const nn_real *a, const nn_real *b, size_t pixels,
	uint32_t channels, nn_real *part, double *sums)
{
	memset(part, 0, 2 * channels * sizeof(*part));
	for (size_t p = 0; p < pixels; p++, a += channels, b += channels)
		for (uint32_t c = 0; c < channels; c++) {
			part[c] += a[c];
			part[channels + c] += a[c] * b[c];
		}
	for (uint32_t c = 0; c < 2 * channels; c++)
		sums[c] += (double)part[c];
}

static void convolve_group(const struct layer *l, struct slice *s,
	const nn_real *input, uint32_t first, uint32_t n)
{
	size_t pixels = (size_t)l->side * l->side;
	size_t numbers = layer_numbers(l);
	nn_real *pooled = l->pooled + first * numbers;
	nn_real *to = l->pool == 1 ? pooled : s->convolved;

	for (uint32_t i = 0; i < n; i++)
		to_columns(l, input + (first + i) * input_numbers(l),
			s->columns + i * pixels * 9 * l->in);
	NN_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(n * pixels),
		(int)l->out, (int)(9 * l->in), 1, s->columns, (int)(9 * l->in),
		l->weight, (int)l->out, 0, to, (int)l->out);
	if (l->pool == 2)
		for (uint32_t i = 0; i < n; i++)
			pool_picture(l, s->convolved + i * pixels * l->out,
				pooled + i * numbers,
				l->from + (first + i) * numbers);
	add_sums(pooled, pooled, n * layer_pixels(l), l->out, s->columns,
		s->sums);
}

void layer_convolve(const struct layer *l, struct slice *s,
	const nn_real *input, uint32_t first, uint32_t n)
{
	memset(s->sums, 0, 2 * l->out * sizeof(*s->sums));
	for (uint32_t i = 0; i < n; i += l->group)
		convolve_group(l, s, input, first + i,
			n - i < l->group ? n - i : l->group);
}

void layer_activate(const struct layer *l, uint32_t first, uint32_t n)
{
	const nn_real *x = l->pooled + first * layer_numbers(l);
	nn_real *y = l->active + first * layer_numbers(l);

	for (size_t p = n * layer_pixels(l); p > 0; p--) {
		for (uint32_t c = 0; c < l->out; c++) {
			nn_real v = (x[c] - l->centre[c]) * l->inverse[c];

			v = v * l->scale[c] + l->shift[c];
			y[c] = v > 0 ? v : 0;
		}
		x += l->out;
		y += l->out;
	}
}

void layer_slope_sums(
	const struct layer *l, struct slice *s, uint32_t first, uint32_t n)
{
	const nn_real *y = l->active + first * layer_numbers(l);
	const nn_real *x = l->pooled + first * layer_numbers(l);
	nn_real *d = l->slope + first * layer_numbers(l);
	size_t numbers = n * layer_numbers(l);

	for (size_t i = 0; i < numbers; i++)
		d[i] = y[i] > 0 ? d[i] : 0;
	memset(s->sums, 0, 2 * l->out * sizeof(*s->sums));
	add_sums(d, x, n * layer_pixels(l), l->out, s->columns, s->sums);
}

/* Take the gradient back through the normalisation, which used the mean and the
 * deviation of the `count` images of the batch. */
static void slope_pooled(
	const struct layer *l, uint32_t first, uint32_t n, uint32_t count)
{
	const nn_real *x = l->pooled + first * layer_numbers(l);
	nn_real *d = l->slope + first * layer_numbers(l);
	nn_real all = (nn_real)(1.0 / ((double)count * layer_pixels(l)));

	for (size_t p = n * layer_pixels(l); p > 0; p--) {
		for (uint32_t c = 0; c < l->out; c++) {
			nn_real v = (x[c] - l->centre[c]) * l->inverse[c];

			v = d[c] -
				all *
					(l->slope_shift[c] +
						v * l->slope_scale[c]);
			d[c] = v * l->scale[c] * l->inverse[c];
		}
		x += l->out;
		d += l->out;
	}
}

static void slope_group(const struct layer *l, struct slice *s,
	nn_real *gradient, const nn_real *input, nn_real *slope_input,
	uint32_t first, uint32_t n)
{
	size_t pixels = (size_t)l->side * l->side;
	size_t numbers = layer_numbers(l);
	const nn_real *d = l->slope + first * numbers;
	int rows = (int)(n * pixels), wide = (int)(9 * l->in);

	for (uint32_t i = 0; i < n; i++)
		to_columns(l, input + (first + i) * input_numbers(l),
			s->columns + i * pixels * 9 * l->in);
	for (uint32_t i = 0; i < n && l->pool == 2; i++)
		unpool_picture(l, d + i * numbers,
			l->from + (first + i) * numbers,
			s->convolved + i * pixels * l->out);
	if (l->pool == 2)
		d = s->convolved;
	NN_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, wide, (int)l->out,
		rows, 1, s->columns, wide, d, (int)l->out, 1, gradient,
		(int)l->out);
	if (!slope_input)
		return;
	NN_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, rows, wide,
		(int)l->out, 1, d, (int)l->out, l->weight, (int)l->out, 0,
		s->columns, wide);
	for (uint32_t i = 0; i < n; i++)
		from_columns(l, s->columns + i * pixels * 9 * l->in,
			slope_input + (first + i) * input_numbers(l));
}

void layer_slope(const struct layer *l, struct slice *s, nn_real *gradient,
	const nn_real *input, nn_real *slope_input, uint32_t first, uint32_t n,
	uint32_t count)
{
	slope_pooled(l, first, n, count);
	for (uint32_t i = 0; i < n; i += l->group)
		slope_group(l, s, gradient, input, slope_input, first + i,
			n - i < l->group ? n - i : l->group);
}
