/* SPDX-License-Identifier: MIT */
/*
 * A mix serves several parts of a dataset in fixed proportions. The stream is
 * cut into *blocks* of Q slots, where Q is the sum of the weights. In each
 * block part j has exactly w_j slots, and the order of the slots is shuffled
 * anew. A part serves its examples in *passes* of its own: each pass has every
 * example of the part once, in a new order. The weights may change at the
 * beginning of an epoch; each such *stage* begins with a new block, and the
 * passes of the parts run on.
 *
 * The example of a slot depends only on the configuration and the slot's
 * number, so a run can begin anywhere. A mix does not change after mix_new();
 * any number of threads may read it.
 */
#ifndef SCHEDULE_MIX_H
#define SCHEDULE_MIX_H

#include <stdint.h>

#include "common/base/err.h"

#define MIX_BLOCK_MAX 4096 /* maximum sum of the weights of a stage */
#define MIX_STAGES_MAX 64

struct mix_part {
	uint64_t examples; /* number of examples, at least 1 */
	/* Indices of the examples in the dataset. NULL: the examples have the
	 * indices from `first` on. The mix keeps a pointer, not a copy. */
	const uint32_t *members;
	uint64_t first;
};

struct mix_stage {
	/* first epoch of the stage; 0 for the first stage, then rising */
	uint64_t epoch;
	/* weight of each part; their sum is at least 1 */
	const uint32_t *weights;
};

struct mix_config {
	const struct mix_part *parts;
	const struct mix_stage *stages;
	uint32_t part_count, stage_count;
	uint64_t epoch_examples, seed;
};

struct part_mix;

/* Create a mix. Copies what the configuration points to, except the members of
 * the parts. Returns 0, -EINVAL with a message, or -ENOMEM. */
int mix_new(struct part_mix **out, const struct mix_config *config,
	struct error *err);
void mix_free(struct part_mix *mix);

/* Returns the number of examples of all parts together. */
uint64_t mix_examples(const struct part_mix *mix);

struct mix_pick {
	uint32_t part;
	uint64_t pass;	/* number of the pass of the part */
	uint64_t index; /* index of the example in the dataset */
};

/* Returns the index of example i of a part, where i is taken modulo the number
 * of its examples. */
uint64_t mix_member(const struct part_mix *mix, uint32_t part, uint64_t i);

/* Returns a hash of the parts, of all weights and of where the stages begin. */
uint64_t mix_hash(const struct part_mix *mix);

/* Find the example of slot g. */
void mix_at(const struct part_mix *mix, uint64_t g, struct mix_pick *pick);

#endif
