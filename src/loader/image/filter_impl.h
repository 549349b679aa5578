/* SPDX-License-Identifier: MIT */
/*
 * The triangle filter along one axis, as 16-bit integer weights. Each filter
 * belongs to an augmenter. Its memory grows to the size of the largest filter
 * and is kept.
 */
#ifndef IMAGE_FILTER_IMPL_H
#define IMAGE_FILTER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Output i is the sum, over all j < 2 * pairs, of input start[i] + j times
 * weights[2 * pairs * i + j]. This sum is 1 << bits times the weighted mean of
 * the inputs. Weights are padded with zeros; inputs with these weights may be
 * up to 2 * pairs - 1 beyond the last input. Outputs from `count` to the next
 * multiple of 4 read input 0.
 */
struct filter {
	unsigned count, pairs, bits;
	uint32_t *start;
	int16_t *weights;
	double *raw; /* weights of one output before rounding */
	size_t start_room, weights_room, raw_room;
};

/* The range to resample on an axis with `limit` inputs. */
struct extent {
	double start, length;
	uint32_t limit;
};

/* Make the filter that resamples a range to `count` outputs, in reverse order
 * if `mirrored`. Returns 0 or -ENOMEM. */
int filter_make(struct filter *f, const struct extent *extent, unsigned count,
	bool mirrored);
void filter_release(struct filter *f);
size_t filter_memory_bytes(const struct filter *f);

/*
 * Make *p an array of at least `count` elements of `size` bytes. *room is its
 * current number of elements; if it is sufficient, nothing changes. New memory
 * is zeroed, and old contents are lost. Returns 0, or -ENOMEM with *p NULL.
 */
int grow(void *p, size_t *room, size_t count, size_t size);

#endif
