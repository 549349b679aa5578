/* SPDX-License-Identifier: MIT */
/*
 * Computes the borders of items and the keys of their entries, and which items
 * may have a part in a tier (fill_part.c).
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <string.h>

#include "common/format/key.h"
#include "mount/cache/fill_part_impl.h"

/* The longest path in a request to an origin, including the NUL. */
#define ITEM_PATH_MAX 8192

void cache_item_at(const struct cache *c, uint64_t off, struct cache_item *item)
{
	uint64_t size = item->version.size_bytes;
	uint64_t chunk = cache_config(c)->chunk_bytes;

	item->base = 0;
	item->size = size;
	if (size <= cache_config(c)->limit_bytes)
		return;
	item->base = off - off % chunk;
	item->size = size - item->base < chunk ? size - item->base : chunk;
}

struct hash128 cache_key(const struct cache *c, const struct cache_item *item)
{
	return key_item_of(cache_config(c)->dataset, item->digest,
		item->version, item->base, item->size);
}

/* Get the path of an item, and check it: many files of a dataset have the same
 * size and time, so with a wrong path the bytes of one file would be stored
 * under the key of another, and nobody would notice. */
int item_path(struct cache *c, const struct cache_item *item, char **out)
{
	char path[ITEM_PATH_MAX];
	int len = cache_config(c)->path(
		cache_config(c)->arg, item->cookie, path, sizeof(path));
	struct hash128 digest;

	if (len < 0)
		return len;
	digest = key_digest(path);
	if (digest.hi != item->digest.hi || digest.lo != item->digest.lo)
		return -ESTALE;
	*out = strdup(path);
	return *out ? 0 : -ENOMEM;
}

bool cache_resident(struct cache *c, const struct cache_item *item)
{
	return cache_tier_has(c, cache_key(c, item), item->size);
}

void cache_mark(struct cache *c, const struct cache_item *item)
{
	struct hash128 key = cache_key(c, item);

	store_mark(cache_config(c)->store, key);
	if (part_map_bytes(item))
		store_part_mark(cache_config(c)->store, key, item->size);
}

size_t part_map_bytes(const struct cache_item *item)
{
	return item->size == item->version.size_bytes
		? 0
		: store_part_map_bytes(item->size);
}

void part_discard(
	struct cache *c, const struct cache_item *item, struct hash128 key)
{
	if (part_map_bytes(item))
		store_part_discard(cache_config(c)->store, key, item->size);
}
