/* SPDX-License-Identifier: MIT */
/*
 * Limits the pages that the kernel keeps of items that are in no tier. In an
 * analysis, drops the pages of each item after each read, so that the next
 * epoch reads the item again, unless a keeper wants the pages to stay.
 */
#ifndef FS_PAGES_H
#define FS_PAGES_H

#include <stdbool.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/fs/agent.h"
#include "mount/names/manifest.h"

struct pages;

struct kept; /* state of a keeper, which owns it */
typedef void pages_drop_fn(void *arg, const struct cache_item *item);

/* Decides which pages stay, and notes when these are read. Any thread may call
 * has(). Only the thread of the pages calls the other functions. */
struct pages_keeper {
	/* open() is called first, close() last. */
	void (*open)(struct kept *k);
	void (*close)(struct kept *k);
	/* An item was read at since_ns. Returns true if its pages stay from now
	 * on. */
	bool (*add)(struct kept *k, const struct cache_item *item,
		uint64_t since_ns);
	/* Find out which pages were read since the last call. */
	void (*look)(struct kept *k);
	/* Call drop() for each item whose pages may not stay any more. */
	void (*check)(struct kept *k, pages_drop_fn *drop, void *arg);
	/* Returns the size of all items whose pages stay. */
	uint64_t (*bytes)(const struct kept *k);
	bool (*has)(struct kept *k, const struct cache_item *item);
	struct kept *kept;
};

struct pages_config {
	struct manifest *manifest;
	const char *mountpoint; /* owned by the caller */
	struct counters *counters;
	uint64_t max_bytes;
	/* the next epoch must read all items from the mount again */
	bool each_epoch;
	/* For files larger than this, pages_part() drops pages in parts. 0: for
	 * no files. */
	uint64_t whole_max_bytes;
	const struct pages_keeper *keeper; /* NULL: no pages have to stay */
	/* The agent of the process that drops pages, for a mount that outlives
	 * its daemon; it outlives the pages. NULL: a thread of the daemon drops
	 * pages */
	struct agent *agent;
};

int pages_new(struct pages **out, const struct pages_config *config,
	struct error *err);
/* Stop dropping pages. All other calls do nothing from now on. NULL is
 * allowed. */
void pages_stop(struct pages *p);
/* Call pages_stop() before; NULL is allowed */
void pages_free(struct pages *p);

/* Note that an item was served to its end. */
void pages_passed(struct pages *p, const struct cache_item *item);

/* Note that a part of a file was read, or that a READ for it has just arrived.
 */
void pages_part(struct pages *p, const struct cache_item *item, uint64_t off,
	uint64_t len);

/* Wait until the keeper has noted all reads so far. Returns the size of the
 * items whose pages stay. */
uint64_t pages_settle(struct pages *p);

/* Call this when the keeper has decided that pages may no longer stay. Waits
 * until these pages have been dropped. */
void pages_changed(struct pages *p);

#endif
