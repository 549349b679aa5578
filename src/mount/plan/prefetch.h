/* SPDX-License-Identifier: MIT */
/*
 * Prefetch without a plan: if a reader goes through a large file from front to
 * back, the bytes ahead of it are fetched, in a window that doubles with each
 * step, up to what the latency of the origin calls for. Files up to --limit
 * need no prefetch: their first read fetches the whole file.
 */
#ifndef PLAN_PREFETCH_H
#define PLAN_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include "mount/cache/cache.h"
#include "mount/plan/plan.h"

struct prefetch;

/* How far ahead of a sequential reader the cache fetches, at most: from an
 * origin that takes 4 ms or more for a request. */
#define PREFETCH_WINDOW_MAX_BYTES ((uint64_t)8 << 20)

/* The cache outlives it. NULL for want of memory. */
struct prefetch *prefetch_new(struct cache *cache);
void prefetch_free(struct prefetch *p);

/*
 * Somebody read [off, off + len) of a file; `file` has digest, version and
 * cookie set. Any thread; does not block.
 */
void prefetch_note(struct prefetch *p, const struct cache_item *file,
	uint64_t off, size_t len);

#endif
