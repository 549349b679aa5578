/* SPDX-License-Identifier: MIT */
/*
 * The ring of steps; see steps_impl.h. Called with the turn's lock held.
 */
#include "loader/engine/steps_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/lock.h"

struct steps {
	const struct turn *turn;
	struct step *ring;
	uint32_t room;
	uint64_t first, end; /* the ring has the steps from first to end - 1 */
	uint32_t ready;	     /* number of queued servings */
	uint32_t unfinished; /* number of planned servings that are not done */
};

/* -- Creation and end ------------------------------------------------------ */

uint64_t steps_bytes(uint32_t room, uint32_t batch)
{
	uint64_t place = sizeof(struct schedule_slot) + sizeof(struct serving);

	return room * (sizeof(struct step) + batch * place);
}

int steps_new(struct steps **out, const struct turn *turn, uint32_t room,
	uint32_t batch)
{
	struct steps *s = calloc(1, sizeof(*s));

	*out = s;
	if (!s)
		return -ENOMEM;
	s->turn = turn;
	s->room = room;
	s->ring = calloc(room, sizeof(*s->ring));
	if (!s->ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < room; i++) {
		struct step *st = &s->ring[i];

		list_init(&st->ready);
		st->slots = calloc(batch, sizeof(*st->slots));
		st->servings = calloc(batch, sizeof(*st->servings));
		if (!st->slots || !st->servings)
			return -ENOMEM;
	}
	return 0;
}

void steps_free(struct steps *s)
{
	for (uint32_t i = 0; s && s->ring && i < s->room; i++) {
		free(s->ring[i].slots);
		free(s->ring[i].servings);
		free(s->ring[i].why);
	}
	if (s)
		free(s->ring);
	free(s);
}

void steps_begin(struct steps *s, uint64_t first)
{
	s->first = s->end = first;
}

/* -- Queries --------------------------------------------------------------- */

uint64_t steps_first(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->first;
}

uint64_t steps_end(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->end;
}

uint32_t steps_ready(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->ready;
}

uint32_t steps_unfinished(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->unfinished;
}

struct step *steps_at(const struct steps *s, uint64_t number)
{
	ASSERT_TURN(s->turn);
	return &s->ring[number % s->room];
}

struct step *steps_oldest(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->first < s->end ? steps_at(s, s->first) : NULL;
}

struct step *steps_finished(const struct steps *s)
{
	struct step *st = steps_oldest(s);

	ASSERT_TURN(s->turn);
	return st && !st->left ? st : NULL;
}

bool steps_full(const struct steps *s)
{
	ASSERT_TURN(s->turn);
	return s->end - s->first >= s->room;
}

/* -- The stages of a serving ----------------------------------------------- */

void steps_publish(struct steps *s, struct step *st, uint32_t count)
{
	ASSERT_TURN(s->turn);
	st->number = s->end++;
	st->count = st->left = count;
	st->lag_min = UINT64_MAX;
	st->lag_sum = st->lags = st->duplicates = st->fresh = 0;
	st->substituted = st->zero_filled = st->damaged = 0;
	st->error = 0;
	free(st->why);
	st->why = NULL;
	list_init(&st->ready);
}

void steps_plan(struct steps *s)
{
	ASSERT_TURN(s->turn);
	s->unfinished++;
}

void steps_done(struct steps *s, struct serving *serving)
{
	ASSERT_TURN(s->turn);
	serving->state = SERVING_DONE;
	serving->step->left--;
	s->unfinished--;
}

void steps_queue(struct steps *s, struct serving *serving)
{
	ASSERT_TURN(s->turn);
	list_add_tail(&serving->step->ready, &serving->node);
	s->ready++;
}

struct serving *steps_take(struct steps *s)
{
	ASSERT_TURN(s->turn);
	for (uint64_t n = s->first; s->ready && n < s->end; n++) {
		struct step *st = steps_at(s, n);
		struct serving *serving;

		if (list_empty(&st->ready))
			continue;
		serving = LIST_FIRST(&st->ready, struct serving, node);
		list_del(&serving->node);
		s->ready--;
		return serving;
	}
	return NULL;
}

void steps_return(struct steps *s)
{
	ASSERT_TURN(s->turn);
	s->first++;
}
