/* SPDX-License-Identifier: MIT */
/*
 * The planned bytes of one owner that the origin still has to deliver, and how
 * fast they arrive. Readers compare values that are many answers apart, so the
 * atomics are relaxed.
 */
#ifndef CACHE_BACKLOG_H
#define CACHE_BACKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/speed.h"

struct depth;

/* Zeroed memory is an empty backlog. */
struct backlog {
	/* Set once: items that are not due soon are fetched as fast as the
	 * others. */
	bool at_once;
	_Atomic uint64_t requests; /* requests that the remaining bytes need */
	/* Useful requests at a time; 0: not known yet */
	_Atomic uint32_t depth;
	struct speed speed; /* of the origin; the lock of the functions */
};

/* The caller of these functions does the locking. `more` is the number of
 * additional requests; a negative number wraps round. */
void backlog_add(struct backlog *b, uint64_t more, const struct depth *d);
/* The origin has delivered these bytes. `answered`: a request is complete. */
void backlog_came(struct backlog *b, size_t bytes, bool answered);
/* An item will not be fetched any more. Was it the last one? */
void backlog_left(struct backlog *b);

#endif
