/* SPDX-License-Identifier: MIT */
/*
 * Ranges of a reader's schedule. A range is a few consecutive fresh numbers of
 * one reader; a worker claims and makes it as a whole. Pure functions.
 */
#ifndef SERVICE_RANGE_H
#define SERVICE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/schedule/schedule.h"
#include "loader/service/service_names.h"

struct service_range {
	struct hash128 name;
	uint32_t count;
	struct sample_name example[RANGE_EXAMPLES_MAX];
};

/* Returns the number of fresh numbers in a range, with this echo factor. Ranges
 * begin at its multiples. */
uint32_t service_range_size(struct schedule_echo echo);

/* The name of the example in a slot. */
struct sample_name service_example(
	const struct schedule *s, const struct schedule_slot *slot);
/* The number of the sample for serving k of an example: at the other echo
 * points than SCHEDULE_BEFORE, all servings have the same sample. */
uint32_t service_sample_of(const struct schedule *s, uint32_t k);

/* Fill in the range that begins at fresh number f. Returns false if f is behind
 * the last example. */
bool service_range_at(
	const struct schedule *s, uint64_t f, struct service_range *out);

#endif
