/* SPDX-License-Identifier: MIT */
/*
 * A hash table of numbers above 0, each of which stands for an element of the
 * caller. The caller has the keys, compares them, and computes the hash of an
 * element. Open addressing; an element takes 6 to 12 bytes. Zero the struct
 * before its first use, and call table_release() at the end. The caller does
 * the locking.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdint.h>
#include <stdlib.h>

/* All members are private. */
struct table {
	uint32_t *slot;	      /* 0: free */
	uint32_t slots, used; /* number of slots: 0, or a power of two */
};

/* Free the memory. After that, the table is empty. */
static inline void table_release(struct table *t)
{
	free(t->slot);
	*t = (struct table){NULL, 0, 0};
}

typedef uint32_t table_hash_fn(const void *arg, uint32_t n);

/* Loop over all numbers that have the hash; others may be among them, so
 * compare the keys. The table must not change during the loop. */
#define TABLE_FOREACH(n, table, hash)                                          \
	for (uint32_t n, n##_at = (hash); (n = table_next(table, &n##_at));)

static inline uint32_t table_next(const struct table *t, uint32_t *at)
{
	return t->slots ? t->slot[(*at)++ & (t->slots - 1)] : 0;
}

/* Add a number that is not in the table. Returns 0 or -ENOMEM. */
int table_add(
	struct table *t, uint32_t n, table_hash_fn *hash, const void *arg);

/* Add many numbers that are not in the table. In a large table this is several
 * times as fast as adding them one by one. */
int table_add_all(struct table *t, const uint32_t *n, uint32_t count,
	table_hash_fn *hash, const void *arg);

/* Remove a number that is in the table. hash() must still return its hash. */
void table_remove(
	struct table *t, uint32_t n, table_hash_fn *hash, const void *arg);

#endif
