/* SPDX-License-Identifier: MIT */
/*
 * A mix serves several parts of a dataset in fixed proportions. The stream is
 * cut into *blocks* of Q slots, where Q is the sum of the weights. In each
 * block part j has exactly w_j slots, and the order of the slots is shuffled
 * anew. A part serves its examples in *passes* of its own: in each pass every
 * example of the part once, in a new order. The weights may change at the
 * beginning of an epoch; each such *stage* begins with a new block, and the
 * passes of the parts run on.
 *
 * All of it is a function of the slot's number, so a run can begin anywhere. A
 * mix does not change after mix_new(); any number of threads may read it.
 */
#ifndef SCHEDULE_MIX_H
#define SCHEDULE_MIX_H

#include <stdint.h>

#include "common/base/err.h"

#define MIX_BLOCK_MAX 4096 /* maximum sum of the weights of a stage */
#define MIX_STAGES_MAX 64

struct mix_part {
	uint64_t examples; /* >= 1 */
	/* The numbers of its examples in the dataset; NULL: they are `first`
	 * and the numbers after it. The mix keeps a pointer, not a copy. */
	const uint32_t *members;
	uint64_t first;
};

struct mix_stage {
	uint64_t epoch; /* the first one; 0 in the first stage; rising */
	const uint32_t *weights; /* one for each part; the sum is >= 1 */
};

struct mix_config {
	const struct mix_part *parts;
	const struct mix_stage *stages;
	uint32_t part_count, stage_count;
	uint64_t epoch_examples, seed;
};

struct part_mix;

/* Copies what the configuration points to, but not the members of the parts.
 * Returns 0, -EINVAL with a message, or -ENOMEM. */
int mix_new(struct part_mix **out, const struct mix_config *config,
	struct error *err);
void mix_free(struct part_mix *mix);

/* The number of examples of all parts together. */
uint64_t mix_examples(const struct part_mix *mix);

struct mix_pick {
	uint32_t part;
	uint64_t pass;	/* of the part */
	uint64_t index; /* in the dataset */
};

/* Returns example i modulo the size of a part. */
uint64_t mix_member(const struct part_mix *mix, uint32_t part, uint64_t i);

/* Returns a hash of the parts, of all weights and of where the stages begin. */
uint64_t mix_hash(const struct part_mix *mix);

/* Find the example of slot g. */
void mix_at(const struct part_mix *mix, uint64_t g, struct mix_pick *pick);

#endif
