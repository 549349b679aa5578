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
 * Output i is the sum of inputs start[i] + j times weights[2 * pairs * i + j],
 * j < 2 * pairs, which is 1 << bits times their weighted mean. Weights that
 * stand for nothing are 0, and their inputs may lie beyond the last one, by
 * less than 2 * pairs. Outputs from `count` on to the next multiple of 4 read
 * input 0.
 */
struct filter {
	unsigned count, pairs, bits;
	uint32_t *start;
	int16_t *weights;
	double *raw; /* of one output, before they are rounded */
	size_t start_room, weights_room, raw_room;
};

/* The range that is resampled along an axis of `limit` inputs. */
struct span {
	double start, length;
	uint32_t limit;
};

/*
 * Make the filter that turns a span into `count` outputs, the last one first
 * if `mirrored`. -ENOMEM.
 */
int filter_make(struct filter *f, const struct span *span, unsigned count,
	bool mirrored);
void filter_release(struct filter *f);
size_t filter_memory_bytes(const struct filter *f);

/*
 * At least `count` elements of `size` bytes at *p, which had room for *room:
 * old contents are lost, new ones are 0. -ENOMEM, and *p is NULL.
 */
int grow(void *p, size_t *room, size_t count, size_t size);

#endif
