/* SPDX-License-Identifier: MIT */
/*
 * The triangle filter along one axis, as 16-bit integer weights. Owned by an
 * augmenter; memory grows to the largest filter and is kept.
 */
#ifndef IMAGE_FILTER_IMPL_H
#define IMAGE_FILTER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Output i is the sum, over j < 2 * pairs, of input start[i] + j times
 * weights[2 * pairs * i + j]. It is 1 << bits times the weighted mean of these
 * inputs. Weights are padded with 0, and the inputs of such weights may lie up
 * to 2 * pairs - 1 beyond the last input. Outputs from `count` to the next
 * multiple of 4 read input 0.
 */
struct filter {
	unsigned count, pairs, bits;
	uint32_t *start;
	int16_t *weights;
	double *raw; /* weights of one output, before rounding */
	size_t start_room, weights_room, raw_room;
};

/* The range that is resampled along an axis of `limit` inputs. */
struct extent {
	double start, length;
	uint32_t limit;
};

/* Make the filter that turns a range into `count` outputs, in reverse order if
 * `mirrored`. Returns 0 or -ENOMEM. */
int filter_make(struct filter *f, const struct extent *extent, unsigned count,
	bool mirrored);
void filter_release(struct filter *f);
size_t filter_memory_bytes(const struct filter *f);

/*
 * Make room at *p for at least `count` elements of `size` bytes, if *room, the
 * number of elements that fit now, is less. Memory that is newly allocated is
 * zeroed, and old contents are lost. Returns 0, or -ENOMEM with *p NULL.
 */
int grow(void *p, size_t *room, size_t count, size_t size);

#endif
