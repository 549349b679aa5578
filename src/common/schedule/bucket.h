/* SPDX-License-Identifier: MIT */
/*
 * Buckets group examples of similar length, so that all ranks need little
 * padding in a step. The examples of a pass are cut into *blocks* of
 * `batches` global batches. A block is sorted by length, cut into *groups* of
 * one global batch each, and the groups are shuffled. So all ranks have the
 * same bucket in a step, every example comes once in a pass, and a run can
 * begin anywhere.
 *
 * Steps run on over the end of a pass. The step that contains the end has the
 * rest of one pass and the lead of the next. Both are the shortest examples of
 * their blocks, so that this step needs little padding, too.
 *
 * Buckets do not change after buckets_new(); any thread may use them.
 */
#ifndef SCHEDULE_BUCKET_H
#define SCHEDULE_BUCKET_H

#include <stdint.h>

#include "common/base/err.h"

#define BUCKET_BATCHES_MAX 65536
#define BUCKET_EXAMPLES_MAX (1U << 24) /* maximum size of a block */

struct buckets_config {
	/* The length of each example of the dataset. The buckets keep the
	 * pointer. */
	const uint32_t *lengths;
	uint64_t examples; /* of the dataset; at most UINT32_MAX */
	uint64_t seed;
	uint32_t batches; /* global batches in a block */
	uint32_t group;	  /* examples of a global batch: batch x world */
};

struct buckets;

/* Returns 0, -EINVAL with a message, or -ENOMEM. */
int buckets_new(struct buckets **out, const struct buckets_config *config,
	struct error *err);
void buckets_free(struct buckets *b); /* NULL is allowed */

uint64_t buckets_bytes(const struct buckets *b);
/* Returns the number of examples of a global batch. */
uint32_t buckets_group(const struct buckets *b);
/* Returns a hash of the lengths and the sizes. */
uint64_t buckets_hash(const struct buckets *b);

/* A pass of `examples` examples, whose first global number is `begin`. */
struct bucket_pass {
	uint64_t pass, begin, examples;
	/* Returns the example at a place of the shuffled pass. */
	uint64_t (*example)(const void *arg, uint64_t pass, uint64_t at);
	const void *arg;
};

/* Returns the example that is served at place `at` of the pass. */
uint64_t buckets_at(
	const struct buckets *b, const struct bucket_pass *pass, uint64_t at);

#endif
