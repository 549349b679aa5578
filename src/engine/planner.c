/* SPDX-License-Identifier: MIT */
/*
 * The walk along the schedule: steps are planned while a slab is free and
 * there are fewer than batches_ahead; fresh examples are given to the reader up
 * to reads_ahead further. Workers come here between servings; one at a time
 * has `busy`, and asks the schedule and the dataset without the lock. Epochs
 * are nothing special: the walk runs on.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/engine_impl.h"

#define AHEAD_MAX                                                              \
	(sizeof(((struct planner *)0)->ahead) / sizeof(struct schedule_slot))

/* -- The ring of steps ------------------------------------------------------
 */

struct steps {
	struct step *ring;
	uint32_t room;
	uint64_t first, end; /* numbers that are in it */
	uint32_t ready;	     /* servings that are queued */
	uint32_t unfinished; /* servings that are planned, not done */
};

uint64_t steps_first(const struct steps *s)
{
	return s->first;
}

uint64_t steps_end(const struct steps *s)
{
	return s->end;
}

uint32_t steps_ready(const struct steps *s)
{
	return s->ready;
}

uint32_t steps_unfinished(const struct steps *s)
{
	return s->unfinished;
}

struct step *steps_at(const struct steps *s, uint64_t number)
{
	return &s->ring[number % s->room];
}

struct step *steps_oldest(const struct steps *s)
{
	return s->first < s->end ? steps_at(s, s->first) : NULL;
}

void steps_plan(struct steps *s)
{
	s->unfinished++;
}

void steps_done(struct steps *s)
{
	s->unfinished--;
}

void steps_queue(struct steps *s, struct serving *serving)
{
	list_add_tail(&serving->step->ready, &serving->node);
	s->ready++;
}

void steps_unqueue(struct steps *s, struct serving *serving)
{
	list_del(&serving->node);
	s->ready--;
}

struct serving *steps_take(struct steps *s)
{
	for (uint64_t n = s->first; s->ready && n < s->end; n++) {
		struct step *st = steps_at(s, n);
		struct serving *serving;

		if (list_empty(&st->ready))
			continue;
		serving = CONTAINER_OF(st->ready.next, struct serving, node);
		steps_unqueue(s, serving);
		return serving;
	}
	return NULL;
}

void steps_return(struct steps *s)
{
	s->first++;
}

/* -- What is to be planned --------------------------------------------------
 */

static bool wants_step(const struct engine *engine)
{
	const struct planner *p = &engine->planner;

	return !p->at_end && lender_has_free(engine->lender) &&
		engine->steps->end - engine->steps->first <
		engine->s.c.batches_ahead &&
		entries_unused(engine->entries) >= engine->s.c.batch;
}

static bool wants_ahead(const struct engine *engine)
{
	const struct planner *p = &engine->planner;

	return p->read_fresh < p->fresh_end &&
		p->read_fresh < p->planned_fresh + room_ahead(engine) &&
		entries_unused(engine->entries) >=
		engine->s.c.batch + AHEAD_MAX;
}

bool planner_wants(const struct engine *engine)
{
	return !engine->planner.busy && !engine->closing && !engine->stopped &&
		(wants_step(engine) || wants_ahead(engine));
}

/* -- A step ---------------------------------------------------------------- */

static void count_lag(struct engine *engine, struct step *st, struct serving *s)
{
	struct entry *e = s->entry;
	uint64_t before = e->last_step;

	if (!s->echo)
		return;
	if (!e->planned_once && /* before a restart */
		schedule_serving_step(&engine->planner.schedule, e->slot.fresh,
			s->echo - 1, &before) < 0)
		return;
	s->lag = st->number - before;
	st->lag_sum += s->lag;
	st->lags++;
	st->duplicates += s->lag == 0;
	if (s->lag < st->lag_min)
		st->lag_min = s->lag;
}

static void publish_serving(struct engine *engine, struct step *st,
	uint32_t place, const struct example *example)
{
	const struct schedule_slot *slot = &st->slots[place];
	struct serving *s = &st->servings[place];
	struct entry *e = entry_find(engine, slot->fresh);

	if (!e)
		e = entry_add(engine, slot, example);
	*s = (struct serving){.step = st,
		.entry = e,
		.place = place,
		.echo = slot->echo,
		.lag = UINT64_MAX,
		.since_ns = meter_now_ns(engine->meter)};
	list_init(&s->node);
	count_lag(engine, st, s);
	e->planned_once = true;
	e->last_step = st->number;
	if (!slot->echo) {
		st->fresh++;
		engine->planner.epoch = slot->epoch;
		engine->planner.planned_fresh = slot->fresh + 1;
	}
	entry_plan(engine, e, s);
}

/* Which epochs have their last fresh example in this step. */
static void find_ended(
	const struct engine *engine, struct step *st, uint64_t first_epoch)
{
	st->epochs_ended = 0;
	for (uint64_t e = first_epoch; st->fresh && e <= st->epoch; e++) {
		if (schedule_epoch_end(&engine->planner.schedule, e) !=
			st->number + 1)
			continue;
		st->epochs_ended++;
		st->ended_epoch = e;
	}
}

static void publish_step(struct engine *engine, struct step *st, uint32_t n)
{
	struct planner *p = &engine->planner;
	uint64_t first_epoch = p->epoch;

	st->slab = slab_take(engine->lender);
	st->count = st->left = n;
	st->lag_min = UINT64_MAX;
	st->lag_sum = st->lags = st->duplicates = st->fresh = 0;
	st->substituted = st->zero_filled = st->damaged = 0;
	st->error = 0;
	free(st->why);
	st->why = NULL;
	list_init(&st->ready);
	engine->steps->end++;
	for (uint32_t i = 0; i < n; i++)
		publish_serving(engine, st, i, &p->examples[i]);
	st->epoch = p->epoch;
	find_ended(engine, st, first_epoch);
	if (p->read_fresh < p->planned_fresh)
		p->read_fresh = p->planned_fresh;
}

/* Nobody else looks at a step before it is published, nor at the cursor. */
static void plan_step(struct engine *engine)
{
	struct planner *p = &engine->planner;
	struct step *st = steps_at(engine->steps, engine->steps->end);
	uint64_t number = engine->steps->end;
	uint32_t n;

	turn_unlock(&engine->turn);
	n = schedule_next(&p->schedule, &p->cursor, st->slots);
	for (uint32_t i = 0; i < n; i++)
		dataset_example(
			engine->dataset, st->slots[i].index, &p->examples[i]);
	turn_lock(&engine->turn);
	if (!n) {
		p->at_end = true;
		return;
	}
	st->number = number;
	publish_step(engine, st, n);
}

/* -- Reading ahead --------------------------------------------------------- */

static uint32_t look_ahead(struct engine *engine, uint64_t from, uint64_t to)
{
	struct planner *p = &engine->planner;
	uint32_t n = 0;
	uint64_t need_by;

	while (n < AHEAD_MAX && from + n < to &&
		schedule_fresh(
			&p->schedule, from + n, &p->ahead[n], &need_by) == 0 &&
		need_by < p->steps) {
		dataset_example(engine->dataset, p->ahead[n].index,
			&p->ahead_examples[n]);
		n++;
	}
	return n;
}

static void plan_ahead(struct engine *engine)
{
	struct planner *p = &engine->planner;
	uint64_t from = p->read_fresh;
	uint64_t to = p->planned_fresh + room_ahead(engine);
	uint32_t n;

	turn_unlock(&engine->turn);
	n = look_ahead(engine, from, to);
	turn_lock(&engine->turn);
	if (n < AHEAD_MAX && from + n < to)
		p->fresh_end = from + n;
	p->read_fresh = from + n;
	for (uint32_t i = 0; i < n; i++)
		entry_list(engine,
			entry_add(engine, &p->ahead[i], &p->ahead_examples[i]),
			ON_AHEAD);
}

void planner_run(struct engine *engine)
{
	engine->planner.busy = true;
	echo_plan(engine);
	if (engine->stopped)
		; /* the log of changes is of another run */
	else if (wants_step(engine))
		plan_step(engine);
	else
		plan_ahead(engine);
	engine->planner.busy = false;
}

/* -- Life ------------------------------------------------------------------ */

static int steps_new(struct steps **out, uint32_t room, uint32_t batch)
{
	struct steps *s = calloc(1, sizeof(*s));

	*out = s;
	if (!s)
		return -ENOMEM;
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

static void steps_free(struct steps *s)
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

/* The epoch that step `from` begins in. */
static uint64_t epoch_at(struct planner *p)
{
	struct schedule_slot slot;
	uint64_t need_by;
	uint64_t f = p->planned_fresh;

	if (f > 0 && schedule_fresh(&p->schedule, f - 1, &slot, &need_by) == 0)
		return slot.epoch;
	return schedule_fresh(&p->schedule, f, &slot, &need_by) == 0
		? slot.epoch
		: 0;
}

int planner_init(struct engine *engine, struct error *err)
{
	struct planner *p = &engine->planner;
	struct schedule_config config;
	struct schedule_facts facts;
	int rc;

	settings_schedule(&engine->s, engine->examples, &config);
	rc = state_restore(engine, &config, &p->first_step, err);
	if (rc < 0)
		return rc;
	schedule_facts(&p->schedule, &facts);
	rc = schedule_seek(&p->schedule, &p->cursor, p->first_step);
	if (rc < 0)
		return error_set(err, -EBADMSG,
			"the state is of a step after the end of the run");
	p->steps = schedule_steps(&p->schedule);
	p->fresh_end = UINT64_MAX;
	p->planned_fresh = p->read_fresh =
		schedule_fresh_before(&p->schedule, p->first_step);
	p->epoch = epoch_at(p);
	engine->outstanding_max = facts.window + engine->s.c.batch;
	if (engine->outstanding_max > facts.fresh)
		engine->outstanding_max = facts.fresh;
	if (engine->s.c.last == REFRAIN_LAST_DROP)
		meter_stats(engine->meter)->dropped_examples =
			facts.slots_dropped;
	meter_stats(engine->meter)->dropped_fresh = facts.fresh_dropped;
	p->examples = calloc(engine->s.c.batch, sizeof(struct example));
	if (!p->examples ||
		steps_new(&engine->steps, engine->s.c.batches_ahead,
			engine->s.c.batch) < 0)
		return error_set(err, -ENOMEM, "no memory for the steps");
	engine->steps->first = engine->steps->end = p->first_step;
	return 0;
}

void planner_release(struct engine *engine)
{
	steps_free(engine->steps);
	free(engine->planner.examples);
}
