/* SPDX-License-Identifier: MIT */
/*
 * Lists every batch of every rank of a run, so that tests can count in the
 * obvious way. Small runs only.
 */
#ifndef TESTS_SCHEDULE_FIXTURE_H
#define TESTS_SCHEDULE_FIXTURE_H

#include <stdlib.h>

#include "common/schedule/schedule.h"
#include "suite.h"

/* Random test inputs, independent of the hashes of the schedule. */
struct dice {
	uint64_t state;
};

static inline uint64_t roll(struct dice *d, uint64_t below)
{
	d->state = d->state * UINT64_C(6364136223846793005) +
		UINT64_C(1442695040888963407);
	return (d->state >> 33) % below;
}

/* Returns the number of slots whose example has its previous serving in the
 * same batch. */
static inline uint32_t duplicates_of(
	const struct schedule *s, const struct schedule_slot *slots, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t here, before;

		if (!slots[i].echo)
			continue;
		if (schedule_serving_step(
			    s, slots[i].fresh, slots[i].echo, &here) == 0 &&
			schedule_serving_step(s, slots[i].fresh,
				slots[i].echo - 1, &before) == 0)
			count += here == before;
	}
	return count;
}

/* The slots of one rank, in order, and the places where its batches begin. */
struct stream {
	struct schedule_slot *slots;
	/* index in `slots` of the first slot of batch first_step + i; one more
	 * entry than batches */
	uint64_t *begin;
	uint64_t n, batches, first_step;
	uint64_t room, batch_room;
};

static inline void stream_free(struct stream *st)
{
	free(st->slots);
	free(st->begin);
	*st = (struct stream){0};
}

static inline void stream_reserve(struct stream *st, uint32_t batch)
{
	if (st->n + batch > st->room) {
		st->room = 2 * st->room + batch + 64;
		st->slots = realloc(st->slots, st->room * sizeof(*st->slots));
		ck_assert(st->slots);
	}
	if (st->batches + 2 > st->batch_room) {
		st->batch_room = 2 * st->batch_room + 64;
		st->begin =
			realloc(st->begin, st->batch_room * sizeof(*st->begin));
		ck_assert(st->begin);
	}
}

/* Append the next batch. Returns false at the end. */
static inline bool stream_step(struct stream *st, const struct schedule *s,
	struct schedule_cursor *cursor)
{
	uint32_t n;

	stream_reserve(st, s->c.batch);
	if (!st->batches)
		st->first_step = cursor->step;
	st->begin[st->batches] = st->n;
	n = schedule_next(s, cursor, st->slots + st->n);
	ck_assert_uint_le(n, s->c.batch);
	st->n += n;
	st->batches += n > 0;
	st->begin[st->batches] = st->n;
	return n > 0;
}

static inline void stream_run(
	struct stream *st, const struct schedule *s, uint64_t step)
{
	struct schedule_cursor cursor;

	ck_assert_uint_eq(schedule_seek(s, &cursor, step), 0);
	while (stream_step(st, s, &cursor))
		;
}

static inline bool same_slot(
	const struct schedule_slot *a, const struct schedule_slot *b)
{
	return a->index == b->index && a->fresh == b->fresh &&
		a->epoch == b->epoch && a->pass == b->pass &&
		a->augment_seed == b->augment_seed && a->echo == b->echo &&
		a->servings == b->servings && a->last == b->last &&
		a->padded == b->padded;
}

/* Returns the configuration of a run of one epoch of 20,000 examples. */
static inline struct schedule_config run_config(
	uint32_t batch, const char *echo)
{
	struct schedule_config c = {
		.examples = 20000, .epochs = 1, .seed = 3, .batch = batch};

	ck_assert_int_eq(schedule_echo_parse(echo, &c.echo, NULL), 0);
	return c;
}

#endif
