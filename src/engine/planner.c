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

struct step *step_of(const struct engine *engine, uint64_t number)
{
	return &engine->steps[number % engine->s.c.batches_ahead];
}

static bool wants_step(const struct engine *engine)
{
	const struct planner *p = &engine->planner;

	return !p->at_end && lender_has_free(engine->lender) &&
		engine->step_end - engine->step_first <
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
	engine->step_end++;
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
	struct step *st = step_of(engine, engine->step_end);
	uint64_t number = engine->step_end;
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

static int steps_init(struct engine *engine)
{
	const struct refrain_config *c = &engine->s.c;

	engine->steps = calloc(c->batches_ahead, sizeof(*engine->steps));
	if (!engine->steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->batches_ahead; i++) {
		struct step *st = &engine->steps[i];

		list_init(&st->ready);
		st->slots = calloc(c->batch, sizeof(*st->slots));
		st->servings = calloc(c->batch, sizeof(*st->servings));
		if (!st->slots || !st->servings)
			return -ENOMEM;
	}
	engine->planner.examples = calloc(c->batch, sizeof(struct example));
	return engine->planner.examples ? 0 : -ENOMEM;
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
	engine->step_first = engine->step_end = engine->returned =
		p->first_step;
	engine->outstanding_max = facts.window + engine->s.c.batch;
	if (engine->outstanding_max > facts.fresh)
		engine->outstanding_max = facts.fresh;
	if (engine->s.c.last == REFRAIN_LAST_DROP)
		meter_stats(engine->meter)->dropped_examples =
			facts.slots_dropped;
	meter_stats(engine->meter)->dropped_fresh = facts.fresh_dropped;
	if (steps_init(engine) < 0)
		return error_set(err, -ENOMEM, "no memory for the steps");
	return 0;
}

void planner_release(struct engine *engine)
{
	for (uint32_t i = 0; engine->steps && i < engine->s.c.batches_ahead;
		i++) {
		free(engine->steps[i].slots);
		free(engine->steps[i].servings);
		free(engine->steps[i].why);
	}
	free(engine->steps);
	free(engine->planner.examples);
}
