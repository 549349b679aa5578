/* SPDX-License-Identifier: MIT */
/*
 * Planned bytes of one owner that the origin still has to deliver, and how fast
 * they arrive. Atomics are relaxed, because readers only compare values that
 * are many answers apart.
 */
#ifndef CACHE_BACKLOG_H
#define CACHE_BACKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/speed.h"

struct depth;

/* A struct of zeros is an empty backlog. */
struct backlog {
	/* Set once: fetch items that are not due soon as fast as the others. */
	bool at_once;
	_Atomic uint64_t requests; /* requests that the remaining bytes need */
	/* Number of parallel requests that reach the full rate of the origin;
	 * 0: not known yet */
	_Atomic uint32_t depth;
	/* Rate of the origin; guarded by the lock of the functions below */
	struct speed speed;
};

/* The caller of these functions holds a lock. backlog_add() adds `more`
 * requests; to subtract n, pass -n converted to uint64_t. */
void backlog_add(struct backlog *b, uint64_t more, const struct depth *d);
/* Note that the origin has delivered `bytes`. `answered`: a request is
 * complete. */
void backlog_came(struct backlog *b, size_t bytes, bool answered);
/* Note that an item will not be fetched any more. When no item is left, the
 * rate is no longer measured. */
void backlog_left(struct backlog *b);

#endif
