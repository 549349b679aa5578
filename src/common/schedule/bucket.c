/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of buckets. A global batch has G examples, and global batches
 * begin at the global numbers that are multiples of G. So a pass that begins in
 * a global batch has a *lead*: the places that complete this batch. Blocks of
 * K x G places follow each other after the lead; the first one also has the
 * lead, and the last one has what is left, of which the last places, fewer
 * than G, are the *tail*.
 */
#include "common/schedule/bucket.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/hash.h"
#include "common/schedule/memo.h"
#include "common/schedule/permute.h"

struct buckets {
	struct buckets_config c;
	uint64_t hash;
	uint32_t block; /* the most examples that a block can have */
	struct memo *memo;
};

/* The purpose of a hash. */
#define GROUP_ORDER 0x6275636bU

/* A block of a pass. */
struct bucket_block {
	uint64_t begin, end; /* its places in the pass */
	uint64_t lead;	     /* number of its places in the lead */
	uint64_t groups;     /* number of its whole groups */
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void find_block(const struct buckets *b, const struct bucket_pass *pass,
	uint64_t at, struct bucket_block *out)
{
	uint64_t group = b->c.group, size = group * b->c.batches;
	uint64_t into = pass->begin % group;
	uint64_t lead = smaller(into ? group - into : 0, pass->examples);
	uint64_t number = at < lead ? 0 : (at - lead) / size;

	*out = (struct bucket_block){
		.begin = number ? lead + number * size : 0,
		.end = smaller(lead + (number + 1) * size, pass->examples),
		.lead = number ? 0 : lead,
	};
	out->groups = (out->end - out->begin - out->lead) / group;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct bucket_fill {
	const struct buckets *b;
	const struct bucket_pass *pass;
	const struct bucket_block *block;
};

/* Sort the examples of a block by length. */
static void sort_block(const void *arg, const struct memo_key *key,
	uint64_t *values, uint32_t n)
{
	const struct bucket_fill *f = arg;

	(void)key;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t index = f->pass->example(
			f->pass->arg, f->pass->pass, f->block->begin + i);

		values[i] = (uint64_t)f->b->c.lengths[index] << 32 | index;
	}
	qsort(values, n, sizeof(*values), compare_u64);
}

/* Returns the place in the sorted block that is served at place `at` of the
 * block. The lead and the tail take the shortest examples, in this order. */
static uint64_t sorted_place(const struct buckets *b,
	const struct bucket_pass *pass, const struct bucket_block *block,
	uint64_t at)
{
	uint64_t group = b->c.group, grouped = block->groups * group;
	uint64_t tail = block->end - block->begin - block->lead - grouped;
	uint64_t words[] = {GROUP_ORDER, pass->pass, block->begin};
	struct permute p;

	if (at < block->lead)
		return at;
	at -= block->lead;
	if (at >= grouped)
		return block->lead + at - grouped;
	permute_init(
		&p, block->groups, hash64(words, sizeof(words), b->c.seed));
	return block->lead + tail + permute_at(&p, at / group) * group +
		at % group;
}

uint64_t buckets_at(
	const struct buckets *b, const struct bucket_pass *pass, uint64_t at)
{
	struct bucket_block block;
	struct bucket_fill fill = {b, pass, &block};
	uint64_t place;

	find_block(b, pass, at, &block);
	place = sorted_place(b, pass, &block, at - block.begin);
	return (uint32_t)memo_value(b->memo,
		&(struct memo_key){
			{pass->pass, pass->examples, block.begin, block.end}},
		(uint32_t)(block.end - block.begin), (uint32_t)place,
		sort_block, &fill);
}

uint64_t buckets_bytes(const struct buckets *b)
{
	return sizeof(*b) + memo_bytes(b->block);
}

uint32_t buckets_group(const struct buckets *b)
{
	return b->c.group;
}

uint64_t buckets_hash(const struct buckets *b)
{
	return b->hash;
}

int buckets_new(struct buckets **out, const struct buckets_config *config,
	struct error *err)
{
	uint64_t size = (uint64_t)config->batches * config->group;
	uint64_t words[] = {config->batches, config->group};
	struct buckets *b;

	if (!config->group || !config->batches ||
		config->batches > BUCKET_BATCHES_MAX ||
		size > BUCKET_EXAMPLES_MAX)
		return error_set(err, -EINVAL,
			"bucket is %u: times batch and world, %u, it must be "
			"at most %u",
			config->batches, config->group, BUCKET_EXAMPLES_MAX);
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->c = *config;
	b->block = (uint32_t)smaller(size + config->group, config->examples);
	b->hash = hash64(words, sizeof(words),
		hash64(config->lengths,
			config->examples * sizeof(*config->lengths), 1));
	if (memo_new(&b->memo, b->block) < 0) {
		free(b);
		return -ENOMEM;
	}
	*out = b;
	return 0;
}

void buckets_free(struct buckets *b)
{
	if (!b)
		return;
	memo_free(b->memo);
	free(b);
}
