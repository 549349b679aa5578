/* SPDX-License-Identifier: MIT */
/*
 * Thousands of random configurations of the schedule against the obvious:
 * counters, bitmaps, and the construction done by plain loops with no closed
 * form. REFRAIN_TEST_SCHEDULES sets how many; REFRAIN_TEST_SEED which.
 */
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "schedule_fixture.h"
#include "suite.h"

#define WORLD_MAX 7
#define CHANGES_MAX 6

struct change {
	uint64_t begins; /* the first unit with the factor */
	struct schedule_echo echo;
};

/* One random case: the same run on all of its ranks. */
struct scene {
	struct dice dice;
	struct schedule_config c;
	struct schedule s[WORLD_MAX];
	struct stream st[WORLD_MAX];
	struct change log[CHANGES_MAX + 1];
	uint32_t changes; /* log[0] is the beginning */
	uint64_t asked[CHANGES_MAX + 1];
};

static struct schedule_echo random_echo(struct dice *d)
{
	static const struct schedule_echo usual[] = {{1, 1}, {3, 2}, {2, 1},
		{5, 2}, {4, 1}, {8, 1}, {11, 10}, {5, 1}, {3, 1}};
	struct schedule_echo e;

	if (roll(d, 3))
		return usual[roll(d, 9)];
	e.q = 1 + (uint32_t)roll(d, 12);
	e.p = e.q + (uint32_t)roll(d, 6 * e.q);
	return e;
}

static void random_window(struct dice *d, struct schedule_config *c)
{
	uint64_t least =
		schedule_min_window(c->batch, c->echo_max, c->lag, c->point);

	c->allow_small_window = roll(d, 3) == 0;
	if (c->allow_small_window)
		c->window = c->batch + roll(d, 3 * least);
	else
		c->window = least + (roll(d, 2) ? roll(d, 3 * least) : 0);
}

static void random_config(struct dice *d, struct schedule_config *c)
{
	static const uint32_t worlds[] = {1, 1, 2, 3, 7};
	uint64_t scale = roll(d, 4) ? 300 : 40;

	*c = (struct schedule_config){
		.examples = 1 + roll(d, scale),
		.epochs = 1 + roll(d, 4),
		.seed = roll(d, 1000),
		.batch = 1 + (uint32_t)roll(d, roll(d, 3) ? 8 : 40),
		.world = worlds[roll(d, 5)],
		.lag = roll(d, 4) ? 1 : 1 + (uint32_t)roll(d, 3),
		.echo = random_echo(d),
		.point = (enum schedule_point)roll(d, 3),
		.order = (enum schedule_order)roll(d, 3),
		.share = (enum schedule_share)roll(d, 3),
		.nearby = 1 + roll(d, 50),
		.drop_last = roll(d, 2),
	};
	c->echo_max = (struct schedule_echo){8, 1};
	if (roll(d, 3))
		c->echo_max = c->echo;
	random_window(d, c);
}

/* --- running it, with changes on the way --- */

static void random_change(struct scene *sc, uint64_t step)
{
	struct schedule_echo e = random_echo(&sc->dice);
	uint64_t begins = 0;

	if (sc->changes == CHANGES_MAX)
		return;
	for (uint32_t i = 0; i < sc->c.world; i++) {
		struct schedule *s = &sc->s[i];
		uint32_t before = s->segments;
		bool here;

		here = schedule_change(s, step, e) == 0 && s->segments > before;
		/* All ranks accept it, and from the same unit on, or none. */
		expect(i == 0 || here == (begins > 0));
		if (!here)
			continue;
		expect(i == 0 ||
			begins * s->unit_examples == schedule_change_begins(s));
		begins = schedule_change_begins(s) / s->unit_examples;
	}
	if (!begins)
		return;
	sc->changes++;
	sc->asked[sc->changes] = step;
	sc->log[sc->changes] = (struct change){begins, e};
}

static void run_scene(struct scene *sc)
{
	struct schedule_cursor cur[WORLD_MAX];
	bool more = true, changing = roll(&sc->dice, 2);

	for (uint32_t i = 0; i < sc->c.world; i++) {
		sc->c.rank = i;
		expect_eq(schedule_init(&sc->s[i], &sc->c, NULL), 0);
		expect_eq(schedule_seek(&sc->s[i], &cur[i], 0), 0);
	}
	sc->log[0].echo = sc->s[0].c.echo;
	for (uint64_t step = 0; more; step++) {
		more = false;
		if (changing && roll(&sc->dice, 4) == 0)
			random_change(sc, step);
		for (uint32_t i = 0; i < sc->c.world; i++)
			more |= stream_step(&sc->st[i], &sc->s[i], &cur[i]);
	}
}

/* --- the obvious reference --- */

static uint64_t times(uint64_t v, struct schedule_echo e)
{
	return (uint64_t)((unsigned __int128)v * e.p / e.q);
}

/* The segment of a unit; its length is what the rank has of it. */
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

/* A slot's unit is in the block of its place and has the place's class. */
static void expect_place(const struct scene *sc, uint32_t i, uint64_t place,
	uint64_t block, uint64_t unit, uint32_t echo)
{
	uint64_t start = sc->log[i].begins;

	if (echo == 0)
		expect_eq(unit, start + place);
	expect_eq(log_at(sc, unit), i);
	expect_eq((unit - start) / block, place / block);
	expect_eq(due(sc, unit), due(sc, start + place));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Walk all ticks and lanes: the same echoes, blocks and classes in order. */
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
				expect_eq(st->slots[at].echo, k);
				expect_place(sc, j, u - start - d,
					s->segment[j].block,
					f / s->unit_examples, k);
				at += least(s->unit_examples, s->fresh - f);
			}
		}
}

/* --- what a stream must be --- */

struct ledger {
	uint32_t *served;    /* by f */
	uint64_t *last_step; /* by f */
	uint64_t outstanding;
};

static void expect_seeds(const struct schedule *s, const struct stream *st,
	uint64_t at, const uint64_t *first_seed)
{
	const struct schedule_slot *slot = &st->slots[at];

	expect_eq(
		slot->augment_seed, schedule_augment_seed(s, slot, slot->echo));
	if (slot->echo == 0)
		return;
	if (s->c.point == SCHEDULE_BEFORE)
		expect_ne(slot->augment_seed, first_seed[slot->fresh]);
	else
		expect_eq(slot->augment_seed, first_seed[slot->fresh]);
}

/* The lag, and that an exception is where it is said to be. */
static void expect_lag(const struct schedule *s,
	const struct schedule_facts *facts, uint64_t before, uint64_t step)
{
	if (step - before >= s->c.lag || !facts->apart)
		return;
	expect_msg(before <= facts->exception_step &&
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

	expect_lt(f, s->fresh);
	expect_eq(slot->global, f * sc->c.world + rank);
	expect_lt(slot->index, sc->c.examples);
	expect_eq(slot->servings, due(sc, unit));
	expect_eq(slot->echo, l->served[f]);
	expect_eq(slot->last, slot->echo + 1 == slot->servings);
	if (!slot->padded)
		expect_eq(slot->epoch, slot->global / sc->c.examples);
	if (slot->echo)
		expect_lag(s, facts, l->last_step[f], step);
	l->last_step[f] = step;
	l->served[f]++;
	l->outstanding += slot->echo == 0;
}

/* In order, exactly m times, never more outstanding than the window. */
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
		expect_le(l.outstanding, s->c.window);
		if (!sc->changes)
			expect_le(l.outstanding, facts.pool_max);
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			l.outstanding -= st->slots[i].last;
	}
	for (uint64_t f = 0; f < s->fresh && !sc->c.drop_last; f++)
		expect_eq(l.served[f], due(sc, f / s->unit_examples));
	free(l.served);
	free(l.last_step);
	free(seeds);
}

/* Of the examples that SCHEDULE_EQUAL leaves out, this rank's. */
static uint64_t share_withheld(const struct scene *sc, uint32_t rank)
{
	uint64_t left = sc->c.examples * sc->c.epochs % sc->c.world;

	return sc->c.share == SCHEDULE_EQUAL && left > rank;
}

/* All batches whole but the last; the facts' counts are the stream's. */
static void expect_counts(const struct scene *sc, uint32_t rank)
{
	const struct schedule *s = &sc->s[rank];
	const struct stream *st = &sc->st[rank];
	struct schedule_facts facts;
	uint64_t fresh = 0, last_fresh = 0, whole = sc->c.batch;

	schedule_facts(s, &facts);
	expect_eq(facts.steps, st->batches);
	for (uint64_t t = 0; t < st->batches; t++) {
		uint64_t n = st->begin[t + 1] - st->begin[t];

		if (s->unit_examples == 1 && t + 1 < st->batches)
			expect_eq(n, whole);
		if (s->c.drop_last)
			expect_eq(n, whole);
		for (uint64_t i = st->begin[t]; i < st->begin[t + 1]; i++)
			if (st->slots[i].echo == 0) {
				fresh++;
				last_fresh = t;
			}
	}
	if (s->unit_examples == 1)
		expect_eq(facts.servings, st->n);
	else
		expect_eq(facts.servings, st->batches);
	expect_eq(facts.fresh_dropped,
		facts.fresh - fresh + share_withheld(sc, rank));
	if (st->batches && !sc->c.drop_last)
		expect_eq(facts.drain_steps, st->batches - 1 - last_fresh);
}

/* From the ramp's end to the last fresh example. */
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
		expect_msg(fresh == low || fresh == high,
			"%" PRIu64 " fresh in batch %" PRIu64, fresh, t);
	}
}

/* --- every example once --- */

struct cover {
	unsigned char *global; /* by global number */
	unsigned char *index;  /* by epoch and index */
	uint64_t seen, total;
};

static void cover_init(struct cover *cv, const struct scene *sc)
{
	cv->total = sc->c.examples * sc->c.epochs;
	cv->seen = 0;
	cv->global = calloc(cv->total, 1);
	cv->index = calloc(cv->total, 1);
}

static void cover_free(struct cover *cv)
{
	free(cv->global);
	free(cv->index);
}

static void cover_add(struct cover *cv, const struct scene *sc,
	const struct schedule_slot *slot)
{
	uint64_t place = slot->epoch * sc->c.examples + slot->index;

	if (slot->echo || slot->padded)
		return;
	expect_lt(slot->global, cv->total);
	expect_msg(
		!cv->global[slot->global]++, "%" PRIu64 " twice", slot->global);
	expect_msg(!cv->index[place]++, "index %" PRIu64 " twice", slot->index);
	cv->seen++;
}

static void cover_stream(struct cover *cv, const struct scene *sc,
	const struct stream *st, uint64_t batches)
{
	for (uint64_t i = 0; st->batches && i < st->begin[batches]; i++)
		cover_add(cv, sc, &st->slots[i]);
}

static void expect_cover(const struct scene *sc)
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
	if (sc->c.share != SCHEDULE_PAD || !sc->c.drop_last)
		expect_eq(cv.seen + dropped, cv.total);
	if (!sc->c.drop_last && sc->c.share != SCHEDULE_EQUAL)
		expect_eq(dropped, 0);
	if (sc->c.share != SCHEDULE_UNEVEN)
		expect_eq(most, fewest);
	else if (sc->c.point != SCHEDULE_BATCH && sc->c.batch >= 8)
		expect_le(most - fewest, 1);
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

	expect_eq(schedule_seek(s, &cursor, step), 0);
	n = schedule_next(s, &cursor, slots);
	expect_eq(n, st->begin[step - st->first_step + 1] - i);
	for (uint32_t j = 0; j < n; j++) {
		bool twice = false;

		expect(same_slot(&slots[j], &st->slots[i + j]));
		for (uint32_t k = 0; k < j; k++)
			twice |= slots[k].fresh == slots[j].fresh;
		dups += twice;
	}
	expect_eq(schedule_duplicates(s, slots, n), dups);
	free(slots);
}

static void expect_serving_found(
	const struct schedule *s, const struct stream *st, uint64_t step)
{
	for (uint64_t i = st->begin[step]; i < st->begin[step + 1]; i++) {
		const struct schedule_slot *slot = &st->slots[i];
		struct schedule_slot first;
		uint64_t at;

		expect_eq(
			schedule_serving_step(s, slot->fresh, slot->echo, &at),
			0);
		expect_eq(at, step);
		if (slot->echo)
			continue;
		expect_eq(schedule_fresh(s, slot->fresh, &first, &at), 0);
		expect_eq(at, step);
		expect(same_slot(&first, slot));
	}
}

static void expect_access(struct scene *sc, uint32_t rank)
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
	expect_eq(schedule_fresh_before(s, step), fresh);
	for (uint64_t e = 0; e < sc->c.epochs && !sc->c.drop_last; e++)
		expect_eq(schedule_epoch_end(s, e), end[e]);
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
	expect_eq(schedule_restore(&s, &c, state, size, &restored, NULL), 0);
	expect(!restored.world_changed);
	expect_eq(restored.step, least(step, st->batches));
	if (restored.step == step) {
		expect_eq(schedule_save(&s, step, again), size);
		expect_eq(memcmp(state, again, size), 0);
	}
	stream_run(&rest, &s, restored.step);
	expect_eq(restored.step + rest.batches, st->batches);
	for (uint64_t i = 0; i < rest.n; i++)
		expect(same_slot(
			&rest.slots[i], &st->slots[st->n - rest.n + i]));
	stream_free(&rest);
}

static void expect_resume(struct scene *sc)
{
	uint64_t step = roll(&sc->dice, sc->st[0].batches + 1);
	uint8_t state[SCHEDULE_STATE_BYTES], other[SCHEDULE_STATE_BYTES];
	size_t size = schedule_save(&sc->s[0], step, state);

	if (!size) {
		/* Only when changes were made far ahead. */
		expect_ge(sc->changes, 3);
		return;
	}
	for (uint32_t r = 0; r < sc->c.world; r++) {
		if (step <= sc->st[r].batches) {
			expect_eq(schedule_save(&sc->s[r], step, other), size);
			expect_eq(memcmp(state, other, size), 0);
		}
		expect_resumed(sc, r, step, state, size);
	}
}

/* What is owed at a step, by counting; short batches as whole ones. */
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

/* All ranks of one world from a state: to its end, or for some steps. */
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
		expect_eq(schedule_restore(
				  &leg->s[r], c, state, size, &restored, NULL),
			0);
		expect(restored.world_changed);
		expect_eq(restored.echoes_dropped, owed);
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

/* Leave for another world at some step, and again for a third. */
static void expect_elastic(struct scene *sc)
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
	c.world = other_world(&sc->dice, c.world);
	run_leg(&leg, &c, state, size, owed);
	step = roll(&sc->dice, leg.fewest + 1);
	expect_leg(&leg, &c, sc, &cv, step, &owed);
	size = schedule_save(&leg.s[0], leg.first + step, state);
	expect_gt(size, 0);
	for (uint32_t r = 0; r < c.world; r++)
		stream_free(&leg.st[r]);
	c.world = other_world(&sc->dice, c.world);
	run_leg(&leg, &c, state, size, owed);
	expect_leg(&leg, &c, sc, &cv, UINT64_MAX, &owed);
	for (uint32_t r = 0; r < c.world; r++) {
		struct schedule_facts facts;

		schedule_facts(&leg.s[r], &facts);
		dropped += facts.fresh_dropped;
		stream_free(&leg.st[r]);
	}
	if (c.share != SCHEDULE_PAD || !c.drop_last)
		expect_eq(cv.seen + dropped, cv.total);
	cover_free(&cv);
}

/* --- the cases --- */

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_scene(struct scene *sc)
{
	run_scene(sc);
	for (uint32_t r = 0; r < sc->c.world; r++) {
		expect_lanes(sc, r);
		expect_servings(sc, r);
		expect_counts(sc, r);
		expect_steady(sc, r);
		expect_access(sc, r);
	}
	expect_cover(sc);
	expect_resume(sc);
	expect_elastic(sc);
	for (uint32_t r = 0; r < sc->c.world; r++)
		stream_free(&sc->st[r]);
}

static void describe(const struct scene *sc, uint64_t seed)
{
	const struct schedule_config *c = &sc->c;

	printf("# case %" PRIu64 ": N %" PRIu64 " x %" PRIu64 " B %u W %" PRIu64
	       " E %u/%u world %u lag %u",
		seed, c->examples, c->epochs, c->batch, c->window, c->echo.p,
		c->echo.q, c->world, c->lag);
	printf(" point %d order %d share %d drop %d small %d\n", c->point,
		c->order, c->share, c->drop_last, c->allow_small_window);
	fflush(stdout);
}

START_TEST(test_random_schedules_are_what_plain_counting_says)
{
	uint64_t n = from_environment("REFRAIN_TEST_SCHEDULES", 10000);
	uint64_t seed = from_environment("REFRAIN_TEST_SEED", 0);
	uint64_t changed = 0;
	struct scene *sc = calloc(1, sizeof(*sc));

	/* One of the four shares of the cases in each of four processes. */
	for (uint64_t i = (uint64_t)_i; i < n; i += 4) {
		*sc = (struct scene){.dice = {(seed + i) * 7919 + 17}};
		roll(&sc->dice, 2);
		random_config(&sc->dice, &sc->c);
		if (getenv("REFRAIN_TEST_SEED"))
			describe(sc, seed + i);
		check_scene(sc);
		changed += sc->changes;
	}
	/* Changes were among the things tested. */
	expect(n < 1000 || changed > n / 20);
	free(sc);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("schedule");
	TCase *t = case_of(s, "schedule");

	/* Streams come and go by the thousand: keep their pages. */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	tcase_set_timeout(t, 600);
	tcase_add_loop_test(
		t, test_random_schedules_are_what_plain_counting_says, 0, 4);
	return run_suite(s);
}
