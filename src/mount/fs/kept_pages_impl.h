/* SPDX-License-Identifier: MIT */
/*
 * Items whose pages the kernel keeps during an analysis: it answers their
 * readers alone, as it does in a mount that is not analysed. That they are read
 * is seen by inotify, which tells of each read(2) in a directory afterwards, so
 * that no reader waits. All functions but the last two are for one thread,
 * which also is the only one that has the descriptor.
 */
#ifndef FS_KEPT_PAGES_IMPL_H
#define FS_KEPT_PAGES_IMPL_H

#include "mount/fs/pages.h"

struct kept;

/* NULL for want of memory. */
struct kept *kept_new(const struct pages_config *config);
/* The thread calls these before and after all others of its own. */
void kept_open(struct kept *k);
void kept_close(struct kept *k);
void kept_free(struct kept *k); /* NULL is allowed */

/* True: the pages of this item, which was read at since_ns, stay. */
bool kept_add(struct kept *k, const struct cache_item *item, uint64_t since_ns);

/* The bytes of all items that stay. */
uint64_t kept_bytes(const struct kept *k);

/* Call seen() for what was read since the last call. */
void kept_look(struct kept *k);

/* Give those that may not stay to fn(). */
typedef void kept_fn(void *arg, const struct cache_item *item);
void kept_check(struct kept *k, kept_fn *fn, void *arg);

/* Any thread. Is it one of them? And see pages_asked(). */
bool kept_has(struct kept *k, const struct cache_item *item);
void kept_asked(struct kept *k, const struct cache_item *item);

#endif
