/* SPDX-License-Identifier: MIT */
/*
 * Computes the borders of items and the keys of their entries, including parts
 * of chunks that a tier keeps (part.c).
 */
#include "cache/cache_impl.h"

#include <errno.h>
#include <string.h>

#include "base/key.h"
#include "cache/part_impl.h"

/* The longest path that an origin is asked for, NUL included. */
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

/* Many files of a dataset have the same size and time, so the bytes of one must
 * not be kept under the key of another. */
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

void cache_keep(struct cache *c, const struct cache_item *item)
{
	struct hash128 key = cache_key(c, item);

	store_keep(cache_config(c)->store, key);
	part_keep(c, item, key);
}

/* -- Parts of chunks ------------------------------------------------------- */

size_t part_map_bytes(uint64_t item_bytes)
{
	uint64_t pages = (item_bytes + FILL_PAGE_BYTES - 1) / FILL_PAGE_BYTES;

	return (size_t)((pages + 63) / 64 * 8);
}

size_t part_tail_bytes(const struct cache_item *item)
{
	/* A part is read at once, so that its map is that of its bytes. */
	if (item->size == item->version.size_bytes ||
		item->size + part_map_bytes(item->size) > STORE_READ_MAX_BYTES)
		return 0;
	return part_map_bytes(item->size);
}

uint64_t part_bytes(const struct cache_item *item)
{
	return item->size + part_tail_bytes(item);
}

struct hash128 part_key(struct hash128 key)
{
	/* Any bits will do, as keys are hashes. */
	key.lo ^= UINT64_C(0x7061727473206f66);
	key.hi ^= UINT64_C(0x206368756e6b732e);
	return key;
}

void part_discard(
	struct cache *c, const struct cache_item *item, struct hash128 key)
{
	if (part_tail_bytes(item))
		store_discard(cache_config(c)->store, part_key(key),
			part_bytes(item));
}

void part_keep(
	struct cache *c, const struct cache_item *item, struct hash128 key)
{
	/*
	 * A part that a kill left beside its whole chunk is deleted by a sweep.
	 */
	if (part_tail_bytes(item) &&
		!store_has(cache_config(c)->store, key, item->size))
		store_keep(cache_config(c)->store, part_key(key));
}
