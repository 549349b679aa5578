/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of a mix. Slot g lies in a stage, in a block of this stage,
 * and there at a place below Q. A permutation of the block maps the place to a
 * *ticket*: tickets [cum_j, cum_j + w_j) belong to part j. The inverse
 * permutation gives the place of each of the w_j tickets of part j, and so the
 * number of slots of part j that come before slot g in the block. That number,
 * plus the slots of part j in earlier blocks and stages, is k: slot g is
 * serving k of part j, and its example is example k mod N_j of pass k / N_j.
 *
 * The last block of a stage may be cut. Servings are counted in the order of
 * the slots and not by ticket, so those of a part before the cut have all
 * numbers below some k, and no pass has a gap.
 *
 * All places of a block are computed together and remembered (memo.h).
 */
#include "common/schedule/mix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/schedule/memo.h"
#include "common/schedule/permute.h"

struct mix_phase {
	uint64_t begin;	  /* number of its first slot */
	uint64_t *before; /* number of slots of each part in earlier stages */
	/* first ticket of each part, and Q at the end: parts + 1 elements */
	uint32_t *cum;
};

struct part_mix {
	uint64_t seed, examples;
	uint32_t part_count, stage_count;
	struct mix_part *parts;
	struct mix_phase *stages;
	struct memo *memo;
	uint32_t *served; /* used while a block is computed: see fill_block() */
};

/* The purpose of a hash. Hashes for different purposes share no value. */
enum mix_purpose { BLOCK_ORDER = 0x6d697831, PART_ORDER };

static uint32_t block_slots(
	const struct part_mix *mix, const struct mix_phase *stage)
{
	return stage->cum[mix->part_count];
}

/* --- one slot --- */

static void block_permute(const struct part_mix *mix,
	const struct mix_phase *stage, uint64_t block, struct permute *p)
{
	uint64_t words[] = {BLOCK_ORDER, stage->begin, block};

	permute_init(p, block_slots(mix, stage),
		hash64(words, sizeof(words), mix->seed));
}

/* Returns the number of slots of `part` before `place` in a block. */
static uint32_t slots_before_place(const struct mix_phase *stage, uint32_t part,
	const struct permute *block, uint64_t place)
{
	uint32_t n = 0;

	for (uint32_t t = stage->cum[part]; t < stage->cum[part + 1]; t++)
		n += permute_find(block, t) < place;
	return n;
}

static const struct mix_phase *mix_stage_of(
	const struct part_mix *mix, uint64_t g)
{
	uint32_t i = mix->stage_count - 1;

	while (mix->stages[i].begin > g)
		i--; /* the first stage begins at 0 */
	return &mix->stages[i];
}

static uint32_t mix_part_of(const struct part_mix *mix,
	const struct mix_phase *stage, uint64_t ticket)
{
	uint32_t low = 0, high = mix->part_count;

	/* Find the last part whose first ticket is not above the ticket. A part
	 * of weight 0 has the first ticket of the next part, so it is never the
	 * last. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (stage->cum[middle] <= ticket)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t mix_member(const struct part_mix *mix, uint32_t part, uint64_t i)
{
	const struct mix_part *p = &mix->parts[part];

	i %= p->examples;
	return p->members ? p->members[i] : p->first + i;
}

/* Returns the example that part j serves as its k-th. */
static uint64_t mix_example(const struct part_mix *mix, uint32_t j, uint64_t k)
{
	const struct mix_part *part = &mix->parts[j];
	uint64_t words[] = {PART_ORDER, j, k / part->examples};
	struct permute p;
	uint64_t i;

	permute_init(
		&p, part->examples, hash64(words, sizeof(words), mix->seed));
	i = permute_at(&p, k % part->examples);
	return mix_member(mix, j, i);
}

struct mix_fill {
	const struct part_mix *mix;
	const struct mix_phase *stage;
};

/* Compute the part of each place of a block, and how many slots of this part
 * come before it in the block. */
static void fill_block(const void *arg, const struct memo_key *key,
	uint64_t *values, uint32_t n)
{
	const struct mix_fill *f = arg;
	/* The memo calls this in one thread at a time. */
	uint32_t *served = f->mix->served;
	struct permute p;

	memset(served, 0, f->mix->part_count * sizeof(*served));
	block_permute(f->mix, f->stage, key->of[1], &p);
	for (uint32_t place = 0; place < n; place++) {
		uint32_t j =
			mix_part_of(f->mix, f->stage, permute_at(&p, place));

		values[place] = (uint64_t)served[j]++ << 32 | j;
	}
}

void mix_at(const struct part_mix *mix, uint64_t g, struct mix_pick *pick)
{
	const struct mix_phase *stage = mix_stage_of(mix, g);
	uint64_t slots = block_slots(mix, stage), at = g - stage->begin, k;
	struct memo_key key = {{stage->begin, at / slots}};
	uint64_t value = memo_value(mix->memo, &key, (uint32_t)slots,
		(uint32_t)(at % slots), fill_block,
		&(struct mix_fill){mix, stage});
	uint32_t j = (uint32_t)value;

	k = stage->before[j] +
		at / slots * (stage->cum[j + 1] - stage->cum[j]) +
		(value >> 32);
	*pick = (struct mix_pick){.part = j,
		.pass = k / mix->parts[j].examples,
		.index = mix_example(mix, j, k)};
}

uint64_t mix_examples(const struct part_mix *mix)
{
	return mix->examples;
}

uint64_t mix_hash(const struct part_mix *mix)
{
	uint64_t hash = mix->part_count;

	for (uint32_t j = 0; j < mix->part_count; j++) {
		uint64_t words[] = {mix->parts[j].examples,
			mix_member(mix, j, 0), mix_member(mix, j, UINT64_MAX)};

		hash = hash64(words, sizeof(words), hash);
	}
	for (uint32_t i = 0; i < mix->stage_count; i++) {
		const struct mix_phase *stage = &mix->stages[i];

		hash = hash64(&stage->begin, sizeof(stage->begin), hash);
		hash = hash64(stage->cum,
			(mix->part_count + 1) * sizeof(*stage->cum), hash);
	}
	return hash;
}

/* --- construction --- */

void mix_free(struct part_mix *mix)
{
	if (!mix)
		return;
	for (uint32_t i = 0; mix->stages && i < mix->stage_count; i++) {
		free(mix->stages[i].before);
		free(mix->stages[i].cum);
	}
	memo_free(mix->memo);
	free(mix->served);
	free(mix->stages);
	free(mix->parts);
	free(mix);
}

static int take_parts(struct part_mix *mix, const struct mix_config *config,
	struct error *err)
{
	if (!config->part_count || config->part_count > MIX_BLOCK_MAX)
		return error_set(err, -EINVAL,
			"a mix needs 1 to %d parts, not %" PRIu32,
			MIX_BLOCK_MAX, config->part_count);
	mix->parts = calloc(config->part_count, sizeof(*mix->parts));
	if (!mix->parts)
		return -ENOMEM;
	mix->part_count = config->part_count;
	for (uint32_t i = 0; i < config->part_count; i++) {
		mix->parts[i] = config->parts[i];
		mix->examples += config->parts[i].examples;
		if (!config->parts[i].examples)
			return error_set(err, -EINVAL,
				"part %" PRIu32 " of the mix has no examples",
				i + 1);
	}
	return 0;
}

/* Add up the weights, so that each part has its range of tickets. */
static int take_weights(const struct part_mix *mix, struct mix_phase *stage,
	const uint32_t *weights, struct error *err)
{
	uint64_t sum = 0;

	for (uint32_t j = 0; j < mix->part_count; j++) {
		stage->cum[j] = (uint32_t)sum;
		sum += weights[j];
		if (sum > MIX_BLOCK_MAX)
			break;
	}
	if (!sum || sum > MIX_BLOCK_MAX)
		return error_set(err, -EINVAL,
			"the weights of a mix must add up to 1 to %d",
			MIX_BLOCK_MAX);
	stage->cum[mix->part_count] = (uint32_t)sum;
	return 0;
}

/* Count the slots of each part from the beginning of the previous stage to the
 * beginning of this one. */
static void count_before(const struct part_mix *mix,
	const struct mix_phase *old, struct mix_phase *stage)
{
	uint64_t slots = block_slots(mix, old);
	uint64_t n = stage->begin - old->begin, place = n % slots;
	struct permute p;

	block_permute(mix, old, n / slots, &p);
	for (uint32_t j = 0; j < mix->part_count; j++)
		stage->before[j] = old->before[j] +
			n / slots * (old->cum[j + 1] - old->cum[j]) +
			slots_before_place(old, j, &p, place);
}

static int take_stage(struct part_mix *mix, const struct mix_config *config,
	uint32_t i, struct error *err)
{
	const struct mix_stage *from = &config->stages[i];
	struct mix_phase *stage = &mix->stages[i];
	int rc;

	if (i ? from->epoch <= from[-1].epoch : from->epoch)
		return error_set(err, -EINVAL,
			"the first stage of a mix begins at epoch 0, and each "
			"further one at a later epoch");
	if (__builtin_mul_overflow(
		    from->epoch, config->epoch_examples, &stage->begin))
		return error_set(err, -EINVAL,
			"a stage of the mix begins at epoch %" PRIu64
			", which no run reaches",
			from->epoch);
	stage->before = calloc(mix->part_count, sizeof(*stage->before));
	stage->cum = calloc(mix->part_count + 1, sizeof(*stage->cum));
	if (!stage->before || !stage->cum)
		return -ENOMEM;
	rc = take_weights(mix, stage, from->weights, err);
	if (rc == 0 && i)
		count_before(mix, stage - 1, stage);
	return rc;
}

static int make_memo(struct part_mix *mix)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < mix->stage_count; i++)
		if (block_slots(mix, &mix->stages[i]) > most)
			most = block_slots(mix, &mix->stages[i]);
	mix->served = calloc(mix->part_count, sizeof(*mix->served));
	return mix->served ? memo_new(&mix->memo, most) : -ENOMEM;
}

static int fill_mix(struct part_mix *mix, const struct mix_config *config,
	struct error *err)
{
	int rc = take_parts(mix, config, err);

	if (rc < 0)
		return rc;
	if (!config->stage_count || config->stage_count > MIX_STAGES_MAX)
		return error_set(err, -EINVAL,
			"a mix has 1 to %d stages, not %" PRIu32,
			MIX_STAGES_MAX, config->stage_count);
	mix->stages = calloc(config->stage_count, sizeof(*mix->stages));
	if (!mix->stages)
		return -ENOMEM;
	mix->stage_count = config->stage_count;
	for (uint32_t i = 0; i < config->stage_count && rc == 0; i++)
		rc = take_stage(mix, config, i, err);
	return rc == 0 ? make_memo(mix) : rc;
}

int mix_new(struct part_mix **out, const struct mix_config *config,
	struct error *err)
{
	struct part_mix *mix = calloc(1, sizeof(*mix));
	int rc;

	if (!mix)
		return -ENOMEM;
	mix->seed = config->seed;
	rc = fill_mix(mix, config, err);
	if (rc == 0)
		*out = mix;
	else
		mix_free(mix);
	return rc;
}
