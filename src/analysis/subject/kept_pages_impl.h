/* SPDX-License-Identifier: MIT */
/*
 * Items whose pages the kernel keeps during an analysis: the kernel alone
 * answers their readers, as it does in a mount that is not analysed. The daemon
 * sees these reads by inotify, which reports each read(2) in a directory
 * afterwards, so that no reader waits. Only one thread calls the functions,
 * except the last two; it alone has the inotify descriptor.
 */
#ifndef SUBJECT_KEPT_PAGES_IMPL_H
#define SUBJECT_KEPT_PAGES_IMPL_H

#include "mount/fs/pages.h"

struct kept;

struct kept_config {
	struct manifest *manifest;
	const char *mountpoint; /* owned by the caller */
	/* May the kernel keep the pages of this item, which was read to its
	 * end? */
	bool (*stays)(void *arg, const struct cache_item *item);
	/* Called when a reader has begun to read an item again, from kept
	 * pages. */
	void (*seen)(void *arg, const struct cache_item *item);
	void *arg;
};

/* Returns NULL if memory is short. */
struct kept *kept_new(const struct kept_config *config);
/* The thread calls kept_open() first and kept_close() last. */
void kept_open(struct kept *k);
void kept_close(struct kept *k);
void kept_free(struct kept *k); /* NULL is allowed */

/* Have the kernel keep the pages of an item that was read at since_ns. Returns
 * true if they stay. */
bool kept_add(struct kept *k, const struct cache_item *item, uint64_t since_ns);

/* Returns the size of all items whose pages stay. */
uint64_t kept_bytes(const struct kept *k);

/* Call seen() for the items that were read since the last call. */
void kept_look(struct kept *k);

/* Call drop() for the items whose pages may no longer stay. */
void kept_check(struct kept *k, pages_drop_fn *drop, void *arg);

/* Do the pages of this item stay? Any thread may call this. */
bool kept_has(struct kept *k, const struct cache_item *item);
/* Note that a READ of an item's first byte came, and was counted. Any thread
 * may call this. */
void kept_asked(struct kept *k, const struct cache_item *item);

#endif
