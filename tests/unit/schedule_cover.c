/* SPDX-License-Identifier: MIT */
/*
 * Checks that all ranks together serve every example once a pass: in a whole
 * run, in a run that begins anywhere, and in a run that other ranks continue.
 */
#include <errno.h>
#include <string.h>

#include "schedule_scene.h"

/* --- every example once --- */

struct cover {
	/* number of times that an example was served, indexed by pass and
	 * example */
	unsigned char *served;
	uint64_t seen, total, passes;
};

/* Returns the number of examples in a pass; with a mix, the lowest of its
 * parts' numbers. */
static uint64_t fewest_in_pass(const struct scene *sc)
{
	uint64_t n = sc->c.subset ? sc->c.subset : sc->c.examples;

	for (uint32_t j = 0; j < sc->parts; j++)
		n = least(n, sc->part[j].examples);
	return n;
}

static void cover_init(struct cover *cv, const struct scene *sc)
{
	/* the number in the configuration may be 0, which stands for the
	 * default */
	cv->total = sc->s[0].c.epoch_examples * sc->c.epochs;
	cv->passes = cv->total / fewest_in_pass(sc) + 1;
	cv->seen = 0;
	cv->served = calloc(cv->passes, sc->c.examples);
	ck_assert_ptr_nonnull(cv->served);
}

static void cover_free(struct cover *cv)
{
	free(cv->served);
}

static void cover_add(struct cover *cv, const struct scene *sc,
	const struct schedule_slot *slot)
{
	uint64_t place = slot->pass * sc->c.examples + slot->index;

	if (slot->echo || slot->padded)
		return;
	ck_assert_uint_lt(slot->index, sc->c.examples);
	ck_assert_uint_lt(slot->pass, cv->passes);
	ck_assert_uint_lt(slot->epoch, sc->c.epochs);
	ck_assert_msg(
		!cv->served[place]++, "index %" PRIu64 " twice", slot->index);
	cv->seen++;
}

static uint64_t served_in_pass(const struct cover *cv, const struct scene *sc,
	const struct mix_part *part, uint64_t pass)
{
	const unsigned char *at = cv->served + pass * sc->c.examples;
	uint64_t n = 0;

	for (uint64_t i = 0; i < part->examples; i++)
		n += at[part->first + i];
	return n;
}

/* Check that a pass begins only after the pass before it was served in full. */
static void expect_passes(const struct cover *cv, const struct scene *sc)
{
	const struct mix_part whole = {.examples = sc->c.examples};
	uint32_t parts = sc->parts ? sc->parts : 1;

	for (uint32_t j = 0; j < parts; j++) {
		const struct mix_part *part = sc->parts ? &sc->part[j] : &whole;
		uint64_t full = sc->c.subset ? sc->c.subset : part->examples;
		uint64_t before = full;

		for (uint64_t pass = 0; pass < cv->passes; pass++) {
			uint64_t n = served_in_pass(cv, sc, part, pass);

			ck_assert_uint_le(n, full);
			ck_assert(!n || before == full);
			before = n;
		}
	}
}

/* Check that every example of the run was served, or was counted as dropped. */
static void expect_all(
	const struct cover *cv, const struct scene *sc, uint64_t dropped)
{
	if (sc->c.share != SCHEDULE_PAD || !sc->c.drop_last)
		ck_assert_uint_eq(cv->seen + dropped, cv->total);
	if (cv->seen == cv->total)
		expect_passes(cv, sc);
}

static void cover_stream(struct cover *cv, const struct scene *sc,
	const struct stream *st, uint64_t batches)
{
	for (uint64_t i = 0; st->batches && i < st->begin[batches]; i++)
		cover_add(cv, sc, &st->slots[i]);
}

/* --- mixes --- */

/* Returns the part of each global number: 1 for the first part, 0 if it was not
 * served. */
static unsigned char *parts_served(const struct scene *sc, uint64_t total)
{
	unsigned char *parts = calloc(total, 1);

	for (uint32_t r = 0; r < sc->c.world; r++) {
		const struct stream *st = &sc->st[r];

		for (uint64_t i = 0; i < st->n; i++) {
			const struct schedule_slot *slot = &st->slots[i];
			unsigned char j = 0;

			if (slot->echo || slot->padded)
				continue;
			while (slot->index >=
				sc->part[j].first + sc->part[j].examples)
				j++;
			parts[slot->fresh * sc->c.world + r] = j + 1;
		}
	}
	return parts;
}

/* Check that each whole block from `begin` to `end` has w_j slots of part j. */
static void expect_blocks(const struct scene *sc, const unsigned char *parts,
	uint64_t begin, uint64_t end, const uint32_t *weight)
{
	uint64_t slots = 0;

	for (uint32_t j = 0; j < sc->parts; j++)
		slots += weight[j];
	for (; begin + slots <= end; begin += slots) {
		uint32_t count[PARTS_MAX + 1] = {0};

		for (uint64_t i = begin; i < begin + slots; i++)
			count[parts[i]]++;
		for (uint32_t j = 0; j < sc->parts && !count[0]; j++)
			ck_assert_uint_eq(count[j + 1], weight[j]);
	}
}

static void expect_mix(const struct scene *sc)
{
	uint64_t v = sc->s[0].c.epoch_examples, end = v * sc->c.epochs;
	uint64_t second = sc->second_stage ? sc->second_stage * v : end;
	unsigned char *parts = parts_served(sc, end);

	expect_blocks(sc, parts, 0, second, sc->weight[0]);
	expect_blocks(sc, parts, second, end, sc->weight[1]);
	free(parts);
}

void expect_cover(const struct scene *sc)
{
	struct cover cv;
	uint64_t dropped = 0, most = 0, fewest = UINT64_MAX;

	cover_init(&cv, sc);
	for (uint32_t r = 0; r < sc->c.world; r++) {
		struct schedule_facts facts;

		cover_stream(&cv, sc, &sc->st[r], sc->st[r].batches);
		schedule_facts(&sc->s[r], &facts);
		dropped += facts.fresh_dropped;
		most = sc->st[r].batches > most ? sc->st[r].batches : most;
		fewest = least(fewest, sc->st[r].batches);
	}
	expect_all(&cv, sc, dropped);
	if (!sc->c.drop_last && sc->c.share != SCHEDULE_EQUAL)
		ck_assert_uint_eq(dropped, 0);
	if (sc->c.share != SCHEDULE_UNEVEN)
		ck_assert_uint_eq(most, fewest);
	else if (sc->c.point != SCHEDULE_BATCH && sc->c.batch >= 8)
		ck_assert_uint_le(most - fewest, 1);
	if (sc->mix)
		expect_mix(sc);
	cover_free(&cv);
}

/* --- random access --- */

static void expect_batch(
	const struct schedule *s, const struct stream *st, uint64_t step)
{
	struct schedule_slot *slots = calloc(s->c.batch, sizeof(*slots));
	uint64_t i = st->begin[step - st->first_step], dups = 0;
	struct schedule_cursor cursor;
	uint32_t n;

	ck_assert_uint_eq(schedule_seek(s, &cursor, step), 0);
	n = schedule_next(s, &cursor, slots);
	ck_assert_uint_eq(n, st->begin[step - st->first_step + 1] - i);
	for (uint32_t j = 0; j < n; j++) {
		bool twice = false;

		ck_assert(same_slot(&slots[j], &st->slots[i + j]));
		for (uint32_t k = 0; k < j; k++)
			twice |= slots[k].fresh == slots[j].fresh;
		dups += twice;
	}
	ck_assert_uint_eq(duplicates_of(s, slots, n), dups);
	free(slots);
}

static void expect_serving_found(
	const struct schedule *s, const struct stream *st, uint64_t step)
{
	for (uint64_t i = st->begin[step]; i < st->begin[step + 1]; i++) {
		const struct schedule_slot *slot = &st->slots[i];
		struct schedule_slot first;
		uint64_t at;

		ck_assert_uint_eq(
			schedule_serving_step(s, slot->fresh, slot->echo, &at),
			0);
		ck_assert_uint_eq(at, step);
		if (slot->echo)
			continue;
		ck_assert_uint_eq(
			schedule_fresh(s, slot->fresh, &first, &at), 0);
		ck_assert_uint_eq(at, step);
		ck_assert(same_slot(&first, slot));
	}
}

void expect_access(struct scene *sc, uint32_t rank)
{
	const struct stream *st = &sc->st[rank];
	const struct schedule *s = &sc->s[rank];
	uint64_t fresh = 0, step, end[4] = {0};

	if (!st->batches)
		return;
	for (int i = 0; i < 4; i++) {
		expect_batch(s, st, roll(&sc->dice, st->batches));
		expect_serving_found(s, st, roll(&sc->dice, st->batches));
	}
	step = roll(&sc->dice, st->batches + 1);
	for (uint64_t t = 0; t < st->batches; t++)
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++) {
			const struct schedule_slot *slot = &st->slots[i];

			fresh += !slot->echo && t < step;
			for (uint64_t e = slot->epoch; !slot->echo && e < 4;
				e++)
				end[e] = t + 1;
		}
	ck_assert_uint_eq(schedule_fresh_before(s, step), fresh);
	for (uint64_t e = 0; e < sc->c.epochs && !sc->c.drop_last; e++)
		ck_assert_uint_eq(schedule_epoch_end(s, e), end[e]);
}

/* --- restoring --- */

static void expect_resumed(const struct scene *sc, uint32_t rank, uint64_t step,
	const uint8_t *state, size_t size)
{
	const struct stream *st = &sc->st[rank];
	struct schedule_config c = sc->c;
	struct schedule_restored restored;
	uint8_t again[SCHEDULE_STATE_BYTES];
	struct stream rest = {0};
	struct schedule s;

	c.rank = rank;
	ck_assert_uint_eq(
		schedule_restore(&s, &c, state, size, &restored, NULL), 0);
	ck_assert_uint_eq(restored.step, least(step, st->batches));
	if (restored.step == step) {
		ck_assert_uint_eq(schedule_save(&s, step, again), size);
		ck_assert_uint_eq(memcmp(state, again, size), 0);
	}
	stream_run(&rest, &s, restored.step);
	ck_assert_uint_eq(restored.step + rest.batches, st->batches);
	for (uint64_t i = 0; i < rest.n; i++)
		ck_assert(same_slot(
			&rest.slots[i], &st->slots[st->n - rest.n + i]));
	stream_free(&rest);
}

void expect_resume(struct scene *sc)
{
	uint64_t step = roll(&sc->dice, sc->st[0].batches + 1);
	uint8_t state[SCHEDULE_STATE_BYTES], other[SCHEDULE_STATE_BYTES];
	size_t size = schedule_save(&sc->s[0], step, state);

	if (!size) {
		/* Changes must have been made far ahead. */
		ck_assert_uint_ge(sc->changes, 3);
		return;
	}
	for (uint32_t r = 0; r < sc->c.world; r++) {
		if (step <= sc->st[r].batches) {
			ck_assert_uint_eq(
				schedule_save(&sc->s[r], step, other), size);
			ck_assert_uint_eq(memcmp(state, other, size), 0);
		}
		expect_resumed(sc, r, step, state, size);
	}
}

/* Count the echoes that are owed at a step; a short batch counts as a whole
 * one. */
static uint64_t count_owed(
	const struct stream *st, uint32_t unit, uint64_t step)
{
	uint64_t owed = 0;

	step = least(step, st->batches);
	for (uint64_t i = 0; st->batches && i < st->begin[step]; i++) {
		if (st->slots[i].fresh % unit)
			continue;
		owed += st->slots[i].echo ? 0 : st->slots[i].servings;
		owed--;
	}
	return owed * unit;
}

/* The run of all ranks of one world, which begins at a state and ends at the
 * end of the run or after some steps. */
struct leg {
	struct schedule s[WORLD_MAX];
	struct stream st[WORLD_MAX];
	uint64_t fewest, first;
};

static void run_leg(struct leg *leg, struct schedule_config *c,
	const uint8_t *state, size_t size, uint64_t owed)
{
	struct schedule_restored restored;

	leg->fewest = UINT64_MAX;
	for (uint32_t r = 0; r < c->world; r++) {
		c->rank = r;
		leg->st[r] = (struct stream){0};
		ck_assert_uint_eq(schedule_restore(&leg->s[r], c, state, size,
					  &restored, NULL),
			0);
		ck_assert_uint_eq(restored.echoes_dropped, owed);
		leg->first = restored.step;
		stream_run(&leg->st[r], &leg->s[r], restored.step);
		leg->fewest = least(leg->fewest, leg->st[r].batches);
	}
}

static uint32_t other_world(struct dice *d, uint32_t world)
{
	static const uint32_t worlds[] = {1, 2, 3, 4, 7};
	uint32_t other = worlds[roll(d, 5)];

	return other == world ? (world == 5 ? 6 : 5) : other;
}

/* Choose another world. With buckets, the global batch must stay the same.
 * Returns false if there is no other world. */
static bool change_world(struct dice *d, struct schedule_config *c)
{
	uint32_t group = c->batch * c->world, world = c->world;

	if (!c->buckets) {
		c->world = other_world(d, c->world);
		return true;
	}
	for (uint32_t i = 1; i <= WORLD_MAX; i++)
		if (i != world && group % i == 0 &&
			(c->world == world || roll(d, 2)))
			c->world = i;
	c->batch = group / c->world;
	c->window = 0;
	c->allow_small_window = false;
	return c->world != world;
}

static void expect_leg(struct leg *leg, const struct schedule_config *c,
	const struct scene *sc, struct cover *cv, uint64_t batches,
	uint64_t *owed)
{
	*owed = 0;
	for (uint32_t r = 0; r < c->world; r++) {
		uint64_t n = least(batches, leg->st[r].batches);

		cover_stream(cv, sc, &leg->st[r], n);
		*owed += count_owed(
			&leg->st[r], leg->s[r].unit_examples, batches);
	}
}

/* Continue in another world at some step, and in a third one after that. */
void expect_elastic(struct scene *sc)
{
	struct schedule_config c = sc->c;
	uint8_t state[SCHEDULE_STATE_BYTES];
	uint64_t step = UINT64_MAX, owed = 0, dropped = 0;
	struct cover cv;
	struct leg leg;
	size_t size;

	for (uint32_t r = 0; r < c.world; r++)
		step = least(step, sc->st[r].batches);
	step = roll(&sc->dice, step + 1);
	size = schedule_save(&sc->s[0], step, state);
	if (!size)
		return;
	cover_init(&cv, sc);
	for (uint32_t r = 0; r < c.world; r++) {
		cover_stream(
			&cv, sc, &sc->st[r], least(step, sc->st[r].batches));
		owed += count_owed(&sc->st[r], sc->s[r].unit_examples, step);
	}
	if (!change_world(&sc->dice, &c)) {
		cover_free(&cv);
		return;
	}
	run_leg(&leg, &c, state, size, owed);
	step = roll(&sc->dice, leg.fewest + 1);
	expect_leg(&leg, &c, sc, &cv, step, &owed);
	size = schedule_save(&leg.s[0], leg.first + step, state);
	ck_assert_uint_gt(size, 0);
	for (uint32_t r = 0; r < c.world; r++)
		stream_free(&leg.st[r]);
	(void)change_world(&sc->dice, &c); /* there is the old world */
	run_leg(&leg, &c, state, size, owed);
	expect_leg(&leg, &c, sc, &cv, UINT64_MAX, &owed);
	for (uint32_t r = 0; r < c.world; r++) {
		struct schedule_facts facts;

		schedule_facts(&leg.s[r], &facts);
		dropped += facts.fresh_dropped;
		stream_free(&leg.st[r]);
	}
	expect_all(&cv, sc, dropped);
	cover_free(&cv);
}
