/* SPDX-License-Identifier: MIT */
/* A hash table of numbers, with linear probing; see table.h. When a number is
 * removed, later numbers move back, so that no search has to pass a freed slot.
 */
#include "common/base/table.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_FIRST_SLOTS 64u
/* The number of slots that are prefetched while earlier ones are filled. */
#define TABLE_AHEAD 16u

static void table_put(struct table *t, uint32_t n, uint32_t hash)
{
	while (t->slot[hash & (t->slots - 1)] != 0)
		hash++;
	t->slot[hash & (t->slots - 1)] = n;
}

static uint32_t table_room(uint32_t slots)
{
	return slots / 3 * 2;
}

static int table_grow(
	struct table *t, uint32_t slots, table_hash_fn *hash, const void *arg)
{
	struct table grown = *t;

	grown.slots = slots;
	grown.slot = calloc(grown.slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i] != 0)
			table_put(&grown, t->slot[i], hash(arg, t->slot[i]));
	free(t->slot);
	*t = grown;
	return 0;
}

/* Make room for a total of `used` numbers. */
static int table_reserve(
	struct table *t, uint32_t used, table_hash_fn *hash, const void *arg)
{
	uint32_t slots = t->slots ? t->slots : TABLE_FIRST_SLOTS;

	while (slots != 0 && table_room(slots) < used)
		slots *= 2;
	if (slots == 0)
		return -ENOMEM;
	return slots == t->slots ? 0 : table_grow(t, slots, hash, arg);
}

int table_add(struct table *t, uint32_t n, table_hash_fn *hash, const void *arg)
{
	int rc = table_reserve(t, t->used + 1, hash, arg);

	if (rc < 0)
		return rc;
	table_put(t, n, hash(arg, n));
	t->used++;
	return 0;
}

int table_add_all(struct table *t, const uint32_t *n, uint32_t count,
	table_hash_fn *hash, const void *arg)
{
	int rc = count > UINT32_MAX - t->used
		? -ENOMEM
		: table_reserve(t, t->used + count, hash, arg);

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		if (i + TABLE_AHEAD < count)
			__builtin_prefetch(
				&t->slot[hash(arg, n[i + TABLE_AHEAD]) &
					(t->slots - 1)],
				1);
		table_put(t, n[i], hash(arg, n[i]));
	}
	t->used += rc == 0 ? count : 0;
	return rc;
}

void table_remove(
	struct table *t, uint32_t n, table_hash_fn *hash, const void *arg)
{
	uint32_t mask = t->slots - 1, hole = hash(arg, n) & mask, i;

	while (t->slot[hole] != n)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; t->slot[i] != 0; i = (i + 1) & mask) {
		uint32_t from_home = (i - hash(arg, t->slot[i])) & mask;

		/* The number must not move: it would be before the slot of its
		 * hash. */
		if (from_home < ((i - hole) & mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = 0;
	t->used--;
}
