/* SPDX-License-Identifier: MIT */
/*
 * Parts: entries that have only some pages of an item. Their content is the
 * bytes of the item, with zeros in place of pages that were not fetched, and a
 * bitmap of the pages. Any thread may call the functions.
 */
#include <stdlib.h>
#include <string.h>

#include "mount/store/store_impl.h"

/* Returns the key of a part: the key of the item with some bits inverted. Any
 * bits will do, because keys are hashes. */
static struct hash128 part_key(struct hash128 key)
{
	key.lo ^= UINT64_C(0x7061727473206f66);
	key.hi ^= UINT64_C(0x206368756e6b732e);
	return key;
}

static size_t map_bytes(uint64_t item_bytes)
{
	uint64_t pages = (item_bytes + STORE_PAGE_BYTES - 1) / STORE_PAGE_BYTES;

	return (size_t)((pages + 63) / 64 * 8);
}

static uint64_t part_bytes(uint64_t item_bytes)
{
	return item_bytes + map_bytes(item_bytes);
}

size_t store_part_map_bytes(uint64_t item_bytes)
{
	/* A part is read by one call, because two calls might read the bytes of
	 * one part and the map of its successor. So an item has no part if its
	 * part could be longer than one read. */
	return part_bytes(item_bytes) > STORE_READ_MAX_BYTES
		? 0
		: map_bytes(item_bytes);
}

bool store_part_has(struct store *s, struct hash128 key, uint64_t item_bytes)
{
	return store_has(s, part_key(key), part_bytes(item_bytes));
}

bool store_part_read(struct store *s, struct hash128 key, uint64_t item_bytes,
	void *data, uint8_t *map)
{
	struct store_scratch *scratch = store_scratch_new();
	uint64_t bytes = part_bytes(item_bytes);
	const void *got;
	bool read = scratch &&
		store_read(s, scratch, part_key(key), bytes, 0, (size_t)bytes,
			&got) > 0;

	if (read) {
		memcpy(data, got, item_bytes);
		memcpy(map, (const uint8_t *)got + item_bytes,
			map_bytes(item_bytes));
	}
	store_scratch_free(scratch);
	return read;
}

/* Write zeros in place of missing pages, and the map after the last page. */
static void complete_data(char *data, uint64_t item_bytes, const uint8_t *map)
{
	for (uint64_t off = 0; off < item_bytes; off += STORE_PAGE_BYTES) {
		uint64_t left = item_bytes - off;

		if (!store_part_map_has(map, off / STORE_PAGE_BYTES))
			memset(data + off, 0,
				left < STORE_PAGE_BYTES ? left
							: STORE_PAGE_BYTES);
	}
	memcpy(data + item_bytes, map, map_bytes(item_bytes));
}

int store_part_write(struct store *s, struct reservation *r, struct hash128 key,
	void *data, uint64_t item_bytes, const uint8_t *map)
{
	uint64_t bytes = part_bytes(item_bytes);
	int rc;

	complete_data(data, item_bytes, map);
	store_unreserve(s, r);
	(void)store_discard(s, part_key(key), bytes);
	rc = store_reserve(s, bytes, r);
	if (rc < 0)
		return rc;
	return store_publish(s, r, part_key(key), data, bytes);
}

void store_part_discard(
	struct store *s, struct hash128 key, uint64_t item_bytes)
{
	(void)store_discard(s, part_key(key), part_bytes(item_bytes));
}

bool store_part_exchange(struct store *s, struct hash128 key,
	uint64_t item_bytes, struct reservation *r)
{
	return store_exchange(
		s, part_key(key), part_bytes(item_bytes), item_bytes, r);
}

void store_mark_size(struct store *s, uint64_t item_bytes)
{
	entries_mark_sizes(s->entries, item_bytes, part_bytes(item_bytes));
}

void store_part_mark(struct store *s, struct hash128 key, uint64_t item_bytes)
{
	/* If an entry has the whole item, the daemon was killed before it could
	 * delete the part. Then the part gets no mark, and the sweep deletes
	 * it. */
	if (!store_has(s, key, item_bytes))
		store_mark(s, part_key(key));
}
