/* SPDX-License-Identifier: MIT */
/*
 * Checks one rank's stream against a construction by plain loops, and counts
 * its slots.
 */
#include <string.h>

#include "schedule_scene.h"

/* --- the obvious reference --- */

static uint64_t times(uint64_t v, struct schedule_echo e)
{
	return (uint64_t)((unsigned __int128)v * e.p / e.q);
}

/* Returns the index of the segment of a unit. */
static uint32_t log_at(const struct scene *sc, uint64_t unit)
{
	uint32_t i = sc->changes;

	while (sc->log[i].begins > unit)
		i--;
	return i;
}

static uint64_t log_end(const struct scene *sc, uint32_t i, uint64_t units)
{
	return i < sc->changes ? sc->log[i + 1].begins : units;
}

static uint32_t due(const struct scene *sc, uint64_t unit)
{
	uint32_t i = log_at(sc, unit);
	uint64_t v = unit - sc->log[i].begins;

	return (uint32_t)(times(v + 1, sc->log[i].echo) -
		times(v, sc->log[i].echo));
}

/* Check that a slot's unit is in the block of its place and has the place's
 * class. */
static void expect_place(const struct scene *sc, uint32_t i, uint64_t place,
	uint64_t block, uint64_t unit, uint32_t echo)
{
	uint64_t start = sc->log[i].begins;

	if (echo == 0)
		ck_assert_uint_eq(unit, start + place);
	ck_assert_uint_eq(log_at(sc, unit), i);
	ck_assert_uint_eq((unit - start) / block, place / block);
	ck_assert_uint_eq(due(sc, unit), due(sc, start + place));
}

/* Check that a walk over all ticks and lanes gives the same echoes, blocks and
 * classes in the same order. */
static void expect_lanes(const struct scene *sc, uint32_t rank)
{
	const struct schedule *s = &sc->s[rank];
	const struct stream *st = &sc->st[rank];
	uint64_t at = 0, end = s->units + s->spread;

	for (uint64_t u = 0; u < end && at < st->n; u++)
		for (uint32_t j = sc->changes + 1; j-- > 0;) {
			struct schedule_echo e = sc->log[j].echo;
			uint64_t start = sc->log[j].begins;
			uint64_t n = log_end(sc, j, s->units) - start;
			uint32_t lanes = (e.p + e.q - 1) / e.q;

			for (uint32_t k = 0; k < lanes && at < st->n; k++) {
				uint64_t d =
					k ? k * s->spread / (lanes - 1) : 0;
				uint64_t f = st->slots[at].fresh;

				if (u < start + d || u - start - d >= n ||
					k >= due(sc, u - d))
					continue;
				ck_assert_uint_eq(st->slots[at].echo, k);
				expect_place(sc, j, u - start - d,
					s->segment[j].block,
					f / s->unit_examples, k);
				at += least(s->unit_examples, s->fresh - f);
			}
		}
}

/* --- what a stream must be --- */

struct ledger {
	/* number of servings of each unit, by fresh number */
	uint32_t *served;
	/* step of the last serving of each unit, by fresh number */
	uint64_t *last_step;
	uint64_t outstanding;
};

static void expect_seeds(const struct schedule *s, const struct stream *st,
	uint64_t at, const uint64_t *first_seed)
{
	const struct schedule_slot *slot = &st->slots[at];

	ck_assert_uint_eq(
		slot->augment_seed, schedule_augment_seed(s, slot, slot->echo));
	if (slot->echo == 0)
		return;
	if (s->c.point == SCHEDULE_BEFORE)
		ck_assert_uint_ne(slot->augment_seed, first_seed[slot->fresh]);
	else
		ck_assert_uint_eq(slot->augment_seed, first_seed[slot->fresh]);
}

/* Check the lag, and that an exception is at the step that the facts name. */
static void expect_lag(const struct schedule *s,
	const struct schedule_facts *facts, uint64_t before, uint64_t step)
{
	if (step - before >= s->c.lag || !facts->apart)
		return;
	ck_assert_msg(before <= facts->exception_step &&
			facts->exception_step <= step,
		"steps %" PRIu64 " and %" PRIu64 ", exception at %" PRIu64,
		before, step, facts->exception_step);
}

static void expect_serving(const struct scene *sc, uint32_t rank,
	struct ledger *l, uint64_t at, uint64_t step,
	const struct schedule_facts *facts)
{
	const struct schedule *s = &sc->s[rank];
	const struct schedule_slot *slot = &sc->st[rank].slots[at];
	uint64_t f = slot->fresh, unit = f / s->unit_examples;
	uint64_t global = f * sc->c.world + rank;

	ck_assert_uint_lt(f, s->fresh);
	ck_assert_uint_lt(slot->index, sc->c.examples);
	ck_assert_uint_eq(slot->servings, due(sc, unit));
	ck_assert_uint_eq(slot->echo, l->served[f]);
	ck_assert_uint_eq(slot->last, slot->echo + 1 == slot->servings);
	if (!slot->padded)
		ck_assert_uint_eq(slot->epoch, global / s->c.epoch_examples);
	if (slot->echo)
		expect_lag(s, facts, l->last_step[f], step);
	l->last_step[f] = step;
	l->served[f]++;
	l->outstanding += slot->echo == 0;
}

/* Check that servings come in order, exactly m times, and that at most as many
 * units as the window has are outstanding at a time. */
static void expect_servings(const struct scene *sc, uint32_t rank)
{
	const struct schedule *s = &sc->s[rank];
	const struct stream *st = &sc->st[rank];
	uint64_t *seeds = calloc(s->fresh + 1, sizeof(*seeds));
	struct ledger l = {.served = calloc(s->fresh + 1, 4),
		.last_step = calloc(s->fresh + 1, 8)};
	struct schedule_facts facts;

	schedule_facts(s, &facts);
	for (uint64_t t = 0; t < st->batches; t++) {
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++) {
			expect_serving(sc, rank, &l, i, t, &facts);
			if (st->slots[i].echo == 0)
				seeds[st->slots[i].fresh] =
					st->slots[i].augment_seed;
			expect_seeds(s, st, i, seeds);
		}
		ck_assert_uint_le(l.outstanding, s->c.window);
		if (!sc->changes)
			ck_assert_uint_le(l.outstanding, facts.pool_max);
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			l.outstanding -= st->slots[i].last;
	}
	for (uint64_t f = 0; f < s->fresh && !sc->c.drop_last; f++)
		ck_assert_uint_eq(l.served[f], due(sc, f / s->unit_examples));
	free(l.served);
	free(l.last_step);
	free(seeds);
}

/* Returns the number of examples of this rank that SCHEDULE_EQUAL leaves out.
 */
static uint64_t share_withheld(const struct scene *sc, uint32_t rank)
{
	uint64_t run = sc->s[rank].c.epoch_examples * sc->c.epochs;
	uint64_t left = run % sc->c.world;

	return sc->c.share == SCHEDULE_EQUAL && left > rank;
}

/* Check that all batches but the last are whole, and that the facts count the
 * stream correctly. */
static void expect_counts(const struct scene *sc, uint32_t rank)
{
	const struct schedule *s = &sc->s[rank];
	const struct stream *st = &sc->st[rank];
	struct schedule_facts facts;
	uint64_t fresh = 0, last_fresh = 0, whole = sc->c.batch;

	schedule_facts(s, &facts);
	ck_assert_uint_eq(facts.steps, st->batches);
	for (uint64_t t = 0; t < st->batches; t++) {
		uint64_t n = st->begin[t + 1] - st->begin[t];

		if (s->unit_examples == 1 && t + 1 < st->batches)
			ck_assert_uint_eq(n, whole);
		if (s->c.drop_last)
			ck_assert_uint_eq(n, whole);
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			if (st->slots[i].echo == 0) {
				fresh++;
				last_fresh = t;
			}
	}
	ck_assert_uint_eq(facts.fresh_dropped,
		facts.fresh - fresh + share_withheld(sc, rank));
	if (st->batches && !sc->c.drop_last)
		ck_assert_uint_eq(
			facts.drain_steps, st->batches - 1 - last_fresh);
}

/* Check the steps from the ramp's end to the last fresh example. */
static void expect_steady(const struct scene *sc, uint32_t rank)
{
	const struct stream *st = &sc->st[rank];
	struct schedule_echo e = sc->log[0].echo;
	struct schedule_facts facts;
	uint64_t last = 0, low, high;

	schedule_facts(&sc->s[rank], &facts);
	if (sc->changes || sc->c.point == SCHEDULE_BATCH)
		return;
	for (uint64_t i = 0, t = 0; i < st->n; i++) {
		t += st->begin[t + 1] <= i;
		last = st->slots[i].echo ? last : t;
	}
	low = (uint64_t)sc->c.batch * e.q / e.p;
	high = low + ((uint64_t)sc->c.batch * e.q % e.p > 0);
	for (uint64_t t = facts.ramp_steps; t < last; t++) {
		uint64_t fresh = 0;

		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			fresh += st->slots[i].echo == 0;
		ck_assert_msg(fresh == low || fresh == high,
			"%" PRIu64 " fresh in batch %" PRIu64, fresh, t);
	}
}

void expect_stream(const struct scene *sc, uint32_t rank)
{
	expect_lanes(sc, rank);
	expect_servings(sc, rank);
	expect_counts(sc, rank);
	expect_steady(sc, rank);
}
