/* SPDX-License-Identifier: MIT */
/*
 * The inner loops for AVX2 and F16C. An attribute compiles only these functions
 * for AVX2, so that the library runs on any processor. FMA is not used, because
 * results must equal those of the plain version.
 */
#include "loader/image/kernels_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Unroll loops over arrays of registers. Without this, such arrays would be in
 * memory at -O2. */
#define UNROLL _Pragma("GCC unroll 4")

#define AVX2 __attribute__((target("avx2,f16c")))
#define INLINE_AVX2 static inline __attribute__((always_inline)) AVX2

/* Returns two weights, repeated for all pairs of 16-bit elements. */
INLINE_AVX2 __m256i weight_pair(const int16_t *weights)
{
	int32_t both;

	memcpy(&both, weights, sizeof(both));
	return _mm256_set1_epi32(both);
}

INLINE_AVX2 __m256i load(const void *p)
{
	return _mm256_loadu_si256(p);
}

/* Compute 32 values of the vertical filter. */
INLINE_AVX2 void mix_32(
	const struct mix *mix, unsigned pairs, size_t at, int16_t *restrict out)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m128i shift = _mm_cvtsi32_si128((int)mix->shift);
	__m256i sum[4], low, high;

	UNROLL
	for (unsigned k = 0; k < 4; k++)
		sum[k] = _mm256_set1_epi32(mix->round);
	UNROLL
	for (unsigned j = 0; j < pairs; j++) {
		__m256i a = load(mix->rows[2 * j] + at);
		__m256i b = load(mix->rows[2 * j + 1] + at);
		__m256i w = weight_pair(mix->weights + 2 * j), v[4];

		low = _mm256_unpacklo_epi8(a, b);
		high = _mm256_unpackhi_epi8(a, b);
		v[0] = _mm256_unpacklo_epi8(low, zero);
		v[1] = _mm256_unpackhi_epi8(low, zero);
		v[2] = _mm256_unpacklo_epi8(high, zero);
		v[3] = _mm256_unpackhi_epi8(high, zero);
		UNROLL
		for (unsigned k = 0; k < 4; k++)
			sum[k] = _mm256_add_epi32(
				sum[k], _mm256_madd_epi16(v[k], w));
	}
	UNROLL
	for (unsigned k = 0; k < 4; k++)
		sum[k] = _mm256_srl_epi32(sum[k], shift);
	low = _mm256_packs_epi32(sum[0], sum[1]);
	high = _mm256_packs_epi32(sum[2], sum[3]);
	_mm256_storeu_si256((__m256i *)(out + at),
		_mm256_permute2x128_si256(low, high, 0x20));
	_mm256_storeu_si256((__m256i *)(out + at + 16),
		_mm256_permute2x128_si256(low, high, 0x31));
}

/* Compute all values of a row. The last block may overlap the block before it,
 * and computes the same values again. */
INLINE_AVX2 void mix_all(const struct mix *mix, unsigned pairs, size_t count,
	int16_t *restrict out)
{
	size_t at = 0;

	for (; at + 32 <= count; at += 32)
		mix_32(mix, pairs, at, out);
	if (at < count)
		mix_32(mix, pairs, count - 32, out);
}

AVX2 static void vertical_avx2(
	const struct mix *mix, size_t count, int16_t *out)
{
	if (count < 32)
		kernels_plain.vertical(mix, count, out);
	else if (mix->pairs == 1)
		mix_all(mix, 1, count, out);
	else if (mix->pairs == 2)
		mix_all(mix, 2, count, out);
	else
		mix_all(mix, mix->pairs, count, out);
}

/* Filter one pixel of two rows, one row in each 128-bit lane. Each lane gets
 * three sums of 32 bits; the fourth is not used. */
INLINE_AVX2 __m256i pixel(const struct filter *f, unsigned pairs, size_t x,
	const int16_t *const in[2])
{
	const __m256i interleave = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
	const int16_t *weights = f->weights + 2 * pairs * x;
	const int16_t *row0 = in[0] + 3 * (size_t)f->start[x];
	const int16_t *row1 = in[1] + 3 * (size_t)f->start[x];
	__m256i sum = _mm256_setzero_si256();

	UNROLL
	for (unsigned j = 0; j < pairs; j++) {
		__m128i low = _mm_loadu_si128((const void *)(row0 + 6 * j));
		__m128i high = _mm_loadu_si128((const void *)(row1 + 6 * j));
		__m256i v = _mm256_inserti128_si256(
			_mm256_castsi128_si256(low), high, 1);

		v = _mm256_shuffle_epi8(v, interleave);
		v = _mm256_madd_epi16(v, weight_pair(weights + 2 * j));
		sum = j ? _mm256_add_epi32(sum, v) : v;
	}
	return sum;
}

/* Filter four pixels of two rows; each 128-bit lane gets 12 bytes. */
INLINE_AVX2 __m256i pixels_4(const struct filter *f, unsigned pairs,
	__m128i shift, size_t x, const int16_t *const in[2])
{
	const __m256i squeeze = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
	__m256i v[4];

	UNROLL
	for (unsigned k = 0; k < 4; k++)
		v[k] = _mm256_srl_epi32(pixel(f, pairs, x + k, in), shift);
	v[0] = _mm256_packs_epi32(v[0], v[1]);
	v[2] = _mm256_packs_epi32(v[2], v[3]);
	return _mm256_shuffle_epi8(_mm256_packus_epi16(v[0], v[2]), squeeze);
}

INLINE_AVX2 void resize_all(const struct filter *f, unsigned pairs,
	unsigned shift, const int16_t *const in[2], uint8_t *const out[2])
{
	const __m128i by = _mm_cvtsi32_si128((int)shift);
	uint8_t end[32];
	size_t x = 0;

	/* Each store writes 16 bytes, of which the next one overwrites 4. So
	 * the loop ends when fewer than 16 bytes of the row are left. */
	for (; x + 6 <= f->count; x += 4) {
		__m256i v = pixels_4(f, pairs, by, x, in);

		_mm_storeu_si128(
			(__m128i *)(out[0] + 3 * x), _mm256_castsi256_si128(v));
		_mm_storeu_si128((__m128i *)(out[1] + 3 * x),
			_mm256_extracti128_si256(v, 1));
	}
	for (; x < f->count; x += 4) {
		size_t n = f->count - x < 4 ? f->count - x : 4;

		_mm256_storeu_si256(
			(__m256i *)end, pixels_4(f, pairs, by, x, in));
		memcpy(out[0] + 3 * x, end, 3 * n);
		memcpy(out[1] + 3 * x, end + 16, 3 * n);
	}
}

AVX2 static void horizontal_avx2(const struct filter *f, unsigned shift,
	const int16_t *const in[2], uint8_t *const out[2])
{
	if (f->pairs == 1)
		resize_all(f, 1, shift, in, out);
	else if (f->pairs == 2)
		resize_all(f, 2, shift, in, out);
	else
		resize_all(f, f->pairs, shift, in, out);
}

/* Convert eight values to f32 or f16, and store them. */
INLINE_AVX2 void put_floats(
	int type, __m256i v, __m256 factor, __m256 add, void *out)
{
	__m256 f = _mm256_add_ps(
		_mm256_mul_ps(_mm256_cvtepi32_ps(v), factor), add);

	if (type == REFRAIN_F32)
		_mm256_storeu_ps(out, f);
	else
		_mm_storeu_si128(
			out, _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
}

/* Emit planar samples (NCHW): eight pixels of each channel at a time. */
INLINE_AVX2 uint32_t float_planes(const struct emitter *e, int type,
	const uint8_t *rgb, uint32_t y, uint8_t *sample)
{
	const __m256i halves = _mm256_setr_epi32(0, 1, 2, 7, 3, 4, 5, 7);
	const __m256i red = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
	const size_t size = type == REFRAIN_F32 ? 4 : 2;
	const size_t plane = (size_t)e->width * e->height * size;
	uint8_t *out = sample + (size_t)y * e->width * size;
	uint32_t x = 0;

	for (; x + 8 <= e->width; x += 8, rgb += 24, out += 8 * size) {
		__m256i v = _mm256_permutevar8x32_epi32(load(rgb), halves);
		__m256i pick = red;

		UNROLL
		for (unsigned channel = 0; channel < 3; channel++) {
			put_floats(type, _mm256_shuffle_epi8(v, pick),
				_mm256_set1_ps(e->factor[channel]),
				_mm256_set1_ps(e->add[channel]),
				out + channel * plane);
			pick = _mm256_add_epi32(pick, _mm256_set1_epi32(1));
		}
	}
	return x;
}

/* Emit interleaved samples (NHWC): eight pixels, which are 24 values, at a
 * time. */
INLINE_AVX2 uint32_t float_pixels(const struct emitter *e, int type,
	const uint8_t *rgb, uint32_t y, uint8_t *sample)
{
	const size_t size = type == REFRAIN_F32 ? 4 : 2;
	uint8_t *out = sample + 3 * (size_t)y * e->width * size;
	float factor[24], add[24];
	uint32_t x = 0;

	for (unsigned i = 0; i < 24; i++) {
		factor[i] = e->factor[i % 3];
		add[i] = e->add[i % 3];
	}
	for (; x + 8 <= e->width; x += 8, rgb += 24, out += 24 * size)
		UNROLL
	for (unsigned k = 0; k < 24; k += 8)
		put_floats(type,
			_mm256_cvtepu8_epi32(
				_mm_loadl_epi64((const void *)(rgb + k))),
			_mm256_loadu_ps(factor + k), _mm256_loadu_ps(add + k),
			out + k * size);
	return x;
}

/* For each channel: the indexes of its bytes in three registers with 48 bytes;
 * 0x80 means no byte. */
static const uint8_t thirds[3][3][16] = {
	{
		{0, 3, 6, 9, 12, 15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 5, 8, 11, 14, 0x80,
			0x80, 0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 1, 4, 7, 10, 13},
	},
	{
		{1, 4, 7, 10, 13, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0, 3, 6, 9, 12, 15, 0x80, 0x80,
			0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 2, 5, 8, 11, 14},
	},
	{
		{2, 5, 8, 11, 14, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 1, 4, 7, 10, 13, 0x80, 0x80,
			0x80, 0x80, 0x80, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
			3, 6, 9, 12, 15},
	},
};

/* Gather every third of 48 bytes, which are those of one channel. */
INLINE_AVX2 __m128i every_third(const __m128i in[3], const __m128i pick[3])
{
	return _mm_or_si128(_mm_shuffle_epi8(in[0], pick[0]),
		_mm_or_si128(_mm_shuffle_epi8(in[1], pick[1]),
			_mm_shuffle_epi8(in[2], pick[2])));
}

AVX2 static uint32_t byte_planes(const struct emitter *e, const uint8_t *rgb,
	uint32_t y, uint8_t *sample)
{
	const size_t plane = (size_t)e->width * e->height;
	uint8_t *out = sample + (size_t)y * e->width;
	__m128i pick[3][3];
	uint32_t x = 0;

	for (int i = 0; i < 9; i++)
		pick[i / 3][i % 3] =
			_mm_loadu_si128((const void *)thirds[i / 3][i % 3]);
	for (; x + 16 <= e->width; x += 16, rgb += 48, out += 16) {
		__m128i in[3];

		UNROLL
		for (int i = 0; i < 3; i++)
			in[i] = _mm_loadu_si128(
				(const void *)(rgb + (ptrdiff_t)16 * i));
		UNROLL
		for (size_t i = 0; i < 3; i++)
			_mm_storeu_si128((void *)(out + i * plane),
				every_third(in, pick[i]));
	}
	return x;
}

AVX2 static void emit_avx2(
	const struct emitter *e, const uint8_t *rgb, uint32_t y, void *sample)
{
	uint32_t x;

	if (e->type == REFRAIN_U8)
		x = e->layout == REFRAIN_NCHW ? byte_planes(e, rgb, y, sample)
					      : 0;
	else if (e->layout == REFRAIN_NCHW)
		x = e->type == REFRAIN_F32
			? float_planes(e, REFRAIN_F32, rgb, y, sample)
			: float_planes(e, REFRAIN_F16, rgb, y, sample);
	else
		x = e->type == REFRAIN_F32
			? float_pixels(e, REFRAIN_F32, rgb, y, sample)
			: float_pixels(e, REFRAIN_F16, rgb, y, sample);
	if (x < e->width)
		emit_plain(e, rgb, x, y, sample);
}

const struct kernels kernels_avx2 = {vertical_avx2, horizontal_avx2, emit_avx2};
#endif
