/* SPDX-License-Identifier: MIT */
/*
 * The inner loops of augmentation: one portable version, and others for
 * processors with SIMD. All versions give the same integers and floats, bit for
 * bit. Pure functions, for any thread.
 */
#ifndef IMAGE_KERNELS_IMPL_H
#define IMAGE_KERNELS_IMPL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loader/image/filter_impl.h"
#include "refrain/loader.h"

/* This many elements after the end of a row that is resampled, and this many
 * bytes after a row that is converted, must be readable. */
#define KERNEL_SLACK 32

/* How u8 values are converted to values of a sample; see emitter_init(). */
struct emitter {
	int type, layout;	 /* enums of refrain/loader.h */
	uint32_t width, height;	 /* size of the sample in pixels */
	float factor[3], add[3]; /* the result is value * factor + add */
	/* Results for all values, as bits of the type */
	uint32_t table[3][256];
	uint32_t fill[3]; /* the configured mean, as bits of the type */
};

/* One output row of the vertical filter. */
struct mix {
	const uint8_t *const *rows; /* pointers to 2 * pairs rows */
	const int16_t *weights;	    /* 2 * pairs weights */
	unsigned pairs;
	int32_t round;	/* this is added to the sum */
	unsigned shift; /* then the sum is shifted right by this many bits */
};

struct kernels {
	/* Compute `count` values; each is at most 2^15 - 1. */
	void (*vertical)(const struct mix *mix, size_t count, int16_t *out);
	/*
	 * Filter two rows at once. `in` are rows from vertical(). Sums are
	 * shifted right by `shift` bits, and the results are below 256. An
	 * output row is RGB and has 3 * f->count bytes.
	 */
	void (*horizontal)(const struct filter *f, unsigned shift,
		const int16_t *const in[2], uint8_t *const out[2]);
	/* Convert row y and store it in the sample. Not for u8 samples in NHWC,
	 * which need no conversion. */
	void (*emit)(const struct emitter *e, const uint8_t *rgb, uint32_t y,
		void *sample);
};

/* Returns the fastest version that this processor and REFRAIN_DISABLE (simd)
 * allow. */
const struct kernels *kernels_best(void);

extern const struct kernels kernels_plain;
#if defined(__x86_64__)
extern const struct kernels kernels_avx2;
#endif

/* Store the bits of a value at index `at` of a sample. */
static inline void emit_value(int type, size_t at, uint32_t bits, void *sample)
{
	uint16_t half = (uint16_t)bits;

	if (type == REFRAIN_F32)
		memcpy((uint8_t *)sample + 4 * at, &bits, 4);
	else if (type == REFRAIN_F16)
		memcpy((uint8_t *)sample + 2 * at, &half, 2);
	else
		((uint8_t *)sample)[at] = (uint8_t)bits;
}

/* Convert the columns of a row from x on with the table. Used for whole rows,
 * and for the end of a row that does not fill a vector. */
void emit_plain(const struct emitter *e, const uint8_t *rgb, uint32_t x,
	uint32_t y, void *sample);

#endif
