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
 * only pad are 0, and their inputs may lie up to 2 * pairs - 1 beyond the last
 * one. Outputs from `count` on to the next multiple of 4 read input 0.
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
 * Make room at *p for at least `count` elements of `size` bytes; it had room
 * for *room. The old contents are lost, and all bytes of a new allocation are
 * 0. Returns -ENOMEM with *p NULL.
 */
int grow(void *p, size_t *room, size_t count, size_t size);

#endif
