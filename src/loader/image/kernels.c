/* SPDX-License-Identifier: MIT */
/*
 * The inner loops in plain C. Their results are the reference for the other
 * versions. Work is divided into blocks of constant size, which compilers turn
 * into SIMD instructions.
 */
#include "loader/image/kernels_impl.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "common/base/feature.h"

#define BLOCK 64

static void mix_block(const struct mix *mix, size_t at, int16_t *out)
{
	int32_t sum[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		sum[i] = mix->round;
	for (unsigned j = 0; j < 2 * mix->pairs; j++) {
		const uint8_t *row = mix->rows[j] + at;
		int32_t w = mix->weights[j];

		for (size_t i = 0; i < BLOCK; i++)
			sum[i] += w * row[i];
	}
	for (size_t i = 0; i < BLOCK; i++)
		out[i] = (int16_t)(sum[i] >> mix->shift);
}

static int16_t mix_one(const struct mix *mix, size_t at)
{
	int32_t sum = mix->round;

	for (unsigned j = 0; j < 2 * mix->pairs; j++)
		sum += mix->weights[j] * mix->rows[j][at];
	return (int16_t)(sum >> mix->shift);
}

static void vertical(const struct mix *mix, size_t count, int16_t *out)
{
	size_t i = 0;

	for (; i + BLOCK <= count; i += BLOCK)
		mix_block(mix, i, out + i);
	for (; i < count; i++)
		out[i] = mix_one(mix, i);
}

/* Filter with a constant number of taps. It is called with the most frequent
 * numbers, so that the compiler can unroll the loop over taps. */
static inline __attribute__((always_inline)) void horizontal_taps(
	const struct filter *f, unsigned taps, unsigned shift,
	const int16_t *in, uint8_t *out)
{
	const int16_t *w = f->weights;

	for (unsigned x = 0; x < f->count; x++, w += taps, out += 3) {
		const int16_t *p = in + 3 * (size_t)f->start[x];
		int32_t r = 0, g = 0, b = 0;

#pragma GCC unroll 4
		for (size_t j = 0; j < taps; j++) {
			r += w[j] * p[3 * j];
			g += w[j] * p[3 * j + 1];
			b += w[j] * p[3 * j + 2];
		}
		out[0] = (uint8_t)(r >> shift);
		out[1] = (uint8_t)(g >> shift);
		out[2] = (uint8_t)(b >> shift);
	}
}

static void horizontal_row(
	const struct filter *f, unsigned shift, const int16_t *in, uint8_t *out)
{
	if (f->pairs == 1)
		horizontal_taps(f, 2, shift, in, out);
	else if (f->pairs == 2)
		horizontal_taps(f, 4, shift, in, out);
	else
		horizontal_taps(f, 2 * f->pairs, shift, in, out);
}

static void horizontal(const struct filter *f, unsigned shift,
	const int16_t *const in[2], uint8_t *const out[2])
{
	horizontal_row(f, shift, in[0], out[0]);
	horizontal_row(f, shift, in[1], out[1]);
}

static inline __attribute__((always_inline)) void emit_typed(
	const struct emitter *e, int type, const uint8_t *rgb, uint32_t x,
	uint32_t y, void *sample)
{
	/* a local copy, because the compiler must assume that stores change *e
	 */
	const uint32_t width = e->width;
	size_t at = (size_t)y * width, plane = 1, pixel = 3;

	if (e->layout == REFRAIN_NCHW) {
		plane = (size_t)width * e->height;
		pixel = 1;
	}
	for (unsigned channel = 0; channel < 3; channel++) {
		const uint32_t *table = e->table[channel];

		for (uint32_t i = x; i < width; i++)
			emit_value(type, channel * plane + (at + i) * pixel,
				table[rgb[3 * (size_t)i + channel]], sample);
	}
}

void emit_plain(const struct emitter *e, const uint8_t *rgb, uint32_t x,
	uint32_t y, void *sample)
{
	if (e->type == REFRAIN_F32)
		emit_typed(e, REFRAIN_F32, rgb, x, y, sample);
	else if (e->type == REFRAIN_F16)
		emit_typed(e, REFRAIN_F16, rgb, x, y, sample);
	else
		emit_typed(e, REFRAIN_U8, rgb, x, y, sample);
}

static void emit(
	const struct emitter *e, const uint8_t *rgb, uint32_t y, void *sample)
{
	emit_plain(e, rgb, 0, y, sample);
}

const struct kernels kernels_plain = {vertical, horizontal, emit};

#if defined(__x86_64__)
/* Does the processor have AVX2 and F16C? Some supported compilers do not know
 * F16C by name, so the bit of cpuid is read. */
static bool has_avx2_and_f16c(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx2") &&
		__get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const struct kernels *kernels_best(void)
{
#if defined(__x86_64__)
	if (feature_enabled("simd") && has_avx2_and_f16c())
		return &kernels_avx2;
#endif
	return &kernels_plain;
}
