/* SPDX-License-Identifier: MIT */
/*
 * A bound on the pages that the kernel keeps of items that passed through. In
 * an analysis they are dropped whenever an item was read, so that each epoch
 * reads it again; those that the caller wants to stay do, and the kernel tells
 * when somebody reads them (kept_pages_impl.h).
 */
#ifndef FS_PAGES_H
#define FS_PAGES_H

#include <stdbool.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/names/manifest.h"

struct pages;

struct pages_config {
	struct manifest *manifest;
	const char *mountpoint; /* borrowed */
	struct counters *counters;
	uint64_t max_bytes;
	bool each_epoch; /* the next epoch is to read all of them again */
	/* Files larger than this are dropped in parts (pages_part()). 0: never.
	 */
	uint64_t whole_max_bytes;
	/*
	 * Both may be NULL; from the thread of the pages. May the kernel keep
	 * the pages of this item? It was read to its end. And: somebody has
	 * begun to read it again, from such pages.
	 */
	bool (*stays)(void *arg, const struct cache_item *item);
	void (*seen)(void *arg, const struct cache_item *item);
	void *arg;
};

int pages_new(struct pages **out, const struct pages_config *config,
	struct error *err);
/* No page is dropped any more; the other calls do nothing. NULL is allowed. */
void pages_stop(struct pages *p);
void pages_free(struct pages *p); /* stopped; NULL is allowed */

/* An item was read to its end. */
void pages_passed(struct pages *p, const struct cache_item *item);

/* This part was read, or its READ has just come. */
void pages_part(struct pages *p, const struct cache_item *item, uint64_t off,
	uint64_t len);

/* A READ of an item's first byte came, and was counted. */
void pages_asked(struct pages *p, const struct cache_item *item);

/* Wait until seen() was called for all that was read until now. Returns the
 * bytes of the items that stay. */
uint64_t pages_settle(struct pages *p);

/* stays() says something else now: wait until pages that may not stay any more
 * have gone. */
void pages_changed(struct pages *p);

#endif
