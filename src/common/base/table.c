/* SPDX-License-Identifier: MIT */
/*
 * A hash table of numbers, with linear probing; see table.h. Removal moves
 * numbers back, so that a search need not pass slots that were left.
 */
#include "common/base/table.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_FIRST_SLOTS 64u

static void table_put(struct table *t, uint32_t n, uint32_t hash)
{
	while (t->slot[hash & (t->slots - 1)] != 0)
		hash++;
	t->slot[hash & (t->slots - 1)] = n;
}

static int table_grow(struct table *t, table_hash_fn *hash, const void *arg)
{
	struct table grown = *t;

	grown.slots = t->slots ? 2 * t->slots : TABLE_FIRST_SLOTS;
	if (grown.slots < t->slots)
		return -ENOMEM;
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

int table_add(struct table *t, uint32_t n, table_hash_fn *hash, const void *arg)
{
	int rc = t->used >= t->slots / 3 * 2 ? table_grow(t, hash, arg) : 0;

	if (rc < 0)
		return rc;
	table_put(t, n, hash(arg, n));
	t->used++;
	return 0;
}

void table_remove(
	struct table *t, uint32_t n, table_hash_fn *hash, const void *arg)
{
	uint32_t mask = t->slots - 1, hole = hash(arg, n) & mask, i;

	while (t->slot[hole] != n)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; t->slot[i] != 0; i = (i + 1) & mask) {
		uint32_t from_home = (i - hash(arg, t->slot[i])) & mask;

		/* A number never lies before the slot of its hash. */
		if (from_home < ((i - hole) & mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = 0;
	t->used--;
}
