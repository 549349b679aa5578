/* SPDX-License-Identifier: MIT */
/*
 * Fetches ahead without a plan: if a reader reads a large file sequentially,
 * the bytes that it needs next are fetched. The number of these bytes, the
 * window, doubles with each step, up to a maximum that depends on the latency
 * of the origin. Files up to --limit need no prefetch, because their first read
 * fetches the whole file.
 */
#ifndef PLAN_PREFETCH_H
#define PLAN_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include "mount/cache/cache.h"
#include "mount/plan/plan.h"

struct prefetch;

/* The maximum window. It is used for an origin whose requests take at least 4
 * ms. */
#define PREFETCH_WINDOW_MAX_BYTES ((uint64_t)8 << 20)

/* The cache must outlive the prefetch. Returns NULL if memory is short. */
struct prefetch *prefetch_new(struct cache *cache);
void prefetch_free(struct prefetch *p);

/* Note a read of [off, off + len) of a file, and fetch the bytes after it. The
 * caller has set digest, version and cookie of `file`. Any thread; does not
 * block. */
void prefetch_note(struct prefetch *p, const struct cache_item *file,
	uint64_t off, size_t len);

#endif
