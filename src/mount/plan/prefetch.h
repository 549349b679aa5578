/* SPDX-License-Identifier: MIT */
/*
 * Prefetches without a plan: if a reader reads a large file sequentially, the
 * bytes ahead of it are fetched. The window doubles with each step, up to a
 * size that depends on the latency of the origin. Files up to --limit need no
 * prefetch: their first read fetches the whole file.
 */
#ifndef PLAN_PREFETCH_H
#define PLAN_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include "mount/cache/cache.h"
#include "mount/plan/plan.h"

struct prefetch;

/* The maximum window, for an origin that takes at least 4 ms for a request. */
#define PREFETCH_WINDOW_MAX_BYTES ((uint64_t)8 << 20)

/* The cache must outlive it. Returns NULL if there is no memory. */
struct prefetch *prefetch_new(struct cache *cache);
void prefetch_free(struct prefetch *p);

/* Note a read of [off, off + len) of a file, and fetch ahead of it. `file` has
 * digest, version and cookie set. Any thread; does not block. */
void prefetch_note(struct prefetch *p, const struct cache_item *file,
	uint64_t off, size_t len);

#endif
