/* SPDX-License-Identifier: MIT */
/*
 * Limits the pages that the kernel keeps of items that passed through. In an
 * analysis the pages of an item are dropped after each read, so that each epoch
 * reads it again, unless a keeper wants them to stay.
 */
#ifndef FS_PAGES_H
#define FS_PAGES_H

#include <stdbool.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/names/manifest.h"

struct pages;

struct kept; /* owned by the keeper */
typedef void pages_drop_fn(void *arg, const struct cache_item *item);

/* Decides which pages stay, and notes when they are read. The pages' own thread
 * calls all functions but has(), which any thread calls. */
struct pages_keeper {
	/* open() is the first call, close() the last. */
	void (*open)(struct kept *k);
	void (*close)(struct kept *k);
	/* An item was read at since_ns. Returns true if its pages stay from now
	 * on. */
	bool (*add)(struct kept *k, const struct cache_item *item,
		uint64_t since_ns);
	/* Note what was read since the last call. */
	void (*look)(struct kept *k);
	/* Give up items whose pages may not stay any more: call drop(). */
	void (*check)(struct kept *k, pages_drop_fn *drop, void *arg);
	/* The bytes of all items whose pages stay. */
	uint64_t (*bytes)(const struct kept *k);
	bool (*has)(struct kept *k, const struct cache_item *item);
	struct kept *kept;
};

struct pages_config {
	struct manifest *manifest;
	const char *mountpoint; /* borrowed */
	struct counters *counters;
	uint64_t max_bytes;
	bool each_epoch; /* the next epoch must read everything again */
	/* Files larger than this are dropped in parts (pages_part()). 0: never.
	 */
	uint64_t whole_max_bytes;
	const struct pages_keeper *keeper; /* NULL: no pages stay */
};

int pages_new(struct pages **out, const struct pages_config *config,
	struct error *err);
/* Stop dropping pages; the other calls do nothing from now on. NULL is
 * allowed. */
void pages_stop(struct pages *p);
void pages_free(struct pages *p); /* stopped; NULL is allowed */

/* Note that an item was read to its end. */
void pages_passed(struct pages *p, const struct cache_item *item);

/* Note that a part was read, or that its READ has just come. */
void pages_part(struct pages *p, const struct cache_item *item, uint64_t off,
	uint64_t len);

/* Wait until the keeper has noted everything that was read until now. Returns
 * the bytes of the items whose pages stay. */
uint64_t pages_settle(struct pages *p);

/* Call this when the keeper decides differently: waits until the pages that may
 * no longer stay have been dropped. */
void pages_changed(struct pages *p);

#endif
