/* SPDX-License-Identifier: MIT */
/* See memo.h. The block that was used least recently makes room for a new
 * one. */
#include "common/schedule/memo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* Readers of a schedule are at a few places at once: the planner of the
 * batches, the names for the plan of a mount, and the requests for keys. */
#define BLOCKS 4

struct memo_block {
	struct memo_key key;
	uint64_t used; /* 0: the block is empty */
	uint64_t *values;
};

struct memo {
	pthread_mutex_t lock; /* guards all other members */
	uint64_t uses;
	struct memo_block block[BLOCKS];
};

uint64_t memo_bytes(uint32_t values_max)
{
	return sizeof(struct memo) +
		(uint64_t)BLOCKS * values_max * sizeof(uint64_t);
}

int memo_new(struct memo **out, uint32_t values_max)
{
	struct memo *memo = calloc(1, sizeof(*memo));
	uint64_t *values =
		calloc(values_max, BLOCKS * sizeof(*memo->block[0].values));

	if (!memo || !values) {
		free(memo);
		free(values);
		return -ENOMEM;
	}
	lock_init(&memo->lock, RANK_MEMO);
	for (unsigned i = 0; i < BLOCKS; i++)
		memo->block[i].values = values + (size_t)i * values_max;
	*out = memo;
	return 0;
}

void memo_free(struct memo *memo)
{
	if (!memo)
		return;
	(void)pthread_mutex_destroy(&memo->lock); /* no thread uses it */
	free(memo->block[0].values);
	free(memo);
}

/* Returns the block with this key, or the one that makes room for it. */
static struct memo_block *memo_find(
	struct memo *memo, const struct memo_key *key)
{
	struct memo_block *oldest = &memo->block[0];

	ASSERT_HELD(&memo->lock);
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct memo_block *b = &memo->block[i];

		if (b->used && memcmp(&b->key, key, sizeof(*key)) == 0)
			return b;
		if (b->used < oldest->used)
			oldest = b;
	}
	oldest->used = 0;
	return oldest;
}

uint64_t memo_value(struct memo *memo, const struct memo_key *key, uint32_t n,
	uint32_t at, memo_fill_fn *fill, const void *arg)
{
	struct memo_block *b;

	LOCK_SCOPE(&memo->lock);
	b = memo_find(memo, key);
	if (!b->used) {
		fill(arg, key, b->values, n);
		b->key = *key;
	}
	b->used = ++memo->uses;
	return b->values[at];
}
