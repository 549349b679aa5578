/* SPDX-License-Identifier: MIT */
/* Parts of chunks in the tiers; see fill_part.c. */
#ifndef CACHE_FILL_PART_IMPL_H
#define CACHE_FILL_PART_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "mount/cache/fill_impl.h"

/* -- cache_item.c -- */

/* Returns the size of the bitmap in a part of this item; 0: the item cannot
 * have a part. */
size_t part_map_bytes(const struct cache_item *item);

/* Delete the part of a chunk that is complete or whose version is gone. Called
 * without the lock. */
void part_discard(
	struct cache *c, const struct cache_item *item, struct hash128 key);

/* -- fill_part.c; all assert the lock -- */

/* If a tier has a part of this fill, start to read it and return true. Nothing
 * may be fetched into the fill until the part has been read. The fill must have
 * memory but no pages yet. */
bool part_load(struct cache *c, struct fill *f);

/* Start to write up to n parts, oldest first, to free memory. */
void part_spill(struct cache *c, unsigned n);

/* Does the fill have pages, or will it soon have pages, that a tier could keep
 * as a part? */
bool part_is_possible(const struct fill *f);

/* Start to write all parts that are large enough to be useful, and drop the
 * other fills. Called when the cache has stopped fetching. */
void part_keep_all(struct cache *c);

#endif
