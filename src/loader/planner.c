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
#include "loader/loader_impl.h"

#define AHEAD_MAX                                                              \
	(sizeof(((struct planner *)0)->ahead) / sizeof(struct schedule_slot))

struct step *step_of(const struct refrain_loader *l, uint64_t number)
{
	return &l->steps[number % l->s.c.batches_ahead];
}

static bool wants_step(const struct refrain_loader *l)
{
	const struct planner *p = &l->planner;

	return !p->at_end && lender_has_free(l->lender) &&
		l->step_end - l->step_first < l->s.c.batches_ahead &&
		l->free_entries >= l->s.c.batch;
}

static bool wants_ahead(const struct refrain_loader *l)
{
	const struct planner *p = &l->planner;

	return p->read_fresh < p->fresh_end &&
		p->read_fresh < p->planned_fresh + room_ahead(l) &&
		l->free_entries >= l->s.c.batch + AHEAD_MAX;
}

bool planner_wants(const struct refrain_loader *l)
{
	return !l->planner.busy && !l->closing && !l->stopped &&
		(wants_step(l) || wants_ahead(l));
}

/* -- A step ---------------------------------------------------------------- */

static void count_lag(
	struct refrain_loader *l, struct step *st, struct serving *s)
{
	struct entry *e = s->entry;
	uint64_t before = e->last_step;

	if (!s->echo)
		return;
	if (!e->planned_once && /* before a restart */
		schedule_serving_step(&l->planner.schedule, e->slot.fresh,
			s->echo - 1, &before) < 0)
		return;
	s->lag = st->number - before;
	st->lag_sum += s->lag;
	st->lags++;
	st->duplicates += s->lag == 0;
	if (s->lag < st->lag_min)
		st->lag_min = s->lag;
}

static void publish_serving(struct refrain_loader *l, struct step *st,
	uint32_t place, const struct example *example)
{
	const struct schedule_slot *slot = &st->slots[place];
	struct serving *s = &st->servings[place];
	struct entry *e = entry_find(l, slot->fresh);

	if (!e)
		e = entry_add(l, slot, example);
	*s = (struct serving){.step = st,
		.entry = e,
		.place = place,
		.echo = slot->echo,
		.lag = UINT64_MAX,
		.since_ns = l->meter.ticked_ns};
	list_init(&s->node);
	count_lag(l, st, s);
	e->planned_once = true;
	e->last_step = st->number;
	if (!slot->echo) {
		st->fresh++;
		l->planner.epoch = slot->epoch;
		l->planner.planned_fresh = slot->fresh + 1;
	}
	entry_plan(l, e, s);
}

/* Which epochs have their last fresh example in this step. */
static void find_ended(
	const struct refrain_loader *l, struct step *st, uint64_t first_epoch)
{
	st->epochs_ended = 0;
	for (uint64_t e = first_epoch; st->fresh && e <= st->epoch; e++) {
		if (schedule_epoch_end(&l->planner.schedule, e) !=
			st->number + 1)
			continue;
		st->epochs_ended++;
		st->ended_epoch = e;
	}
}

static void publish_step(struct refrain_loader *l, struct step *st, uint32_t n)
{
	struct planner *p = &l->planner;
	uint64_t first_epoch = p->epoch;

	st->slab = slab_take(l->lender);
	st->count = st->left = n;
	st->lag_min = UINT64_MAX;
	st->lag_sum = st->lags = st->duplicates = st->fresh = 0;
	st->substituted = st->zero_filled = st->damaged = 0;
	st->error = 0;
	free(st->why);
	st->why = NULL;
	list_init(&st->ready);
	l->step_end++;
	for (uint32_t i = 0; i < n; i++)
		publish_serving(l, st, i, &p->examples[i]);
	st->epoch = p->epoch;
	find_ended(l, st, first_epoch);
	if (p->read_fresh < p->planned_fresh)
		p->read_fresh = p->planned_fresh;
}

/* Nobody else looks at a step before it is published, nor at the cursor. */
static void plan_step(struct refrain_loader *l)
{
	struct planner *p = &l->planner;
	struct step *st = step_of(l, l->step_end);
	uint64_t number = l->step_end;
	uint32_t n;

	turn_unlock(&l->turn);
	n = schedule_next(&p->schedule, &p->cursor, st->slots);
	for (uint32_t i = 0; i < n; i++)
		dataset_example(
			l->dataset, st->slots[i].index, &p->examples[i]);
	turn_lock(&l->turn);
	if (!n) {
		p->at_end = true;
		return;
	}
	st->number = number;
	publish_step(l, st, n);
}

/* -- Reading ahead --------------------------------------------------------- */

static uint32_t look_ahead(struct refrain_loader *l, uint64_t from, uint64_t to)
{
	struct planner *p = &l->planner;
	uint32_t n = 0;
	uint64_t need_by;

	while (n < AHEAD_MAX && from + n < to &&
		schedule_fresh(
			&p->schedule, from + n, &p->ahead[n], &need_by) == 0 &&
		need_by < p->steps) {
		dataset_example(
			l->dataset, p->ahead[n].index, &p->ahead_examples[n]);
		n++;
	}
	return n;
}

static void plan_ahead(struct refrain_loader *l)
{
	struct planner *p = &l->planner;
	uint64_t from = p->read_fresh;
	uint64_t to = p->planned_fresh + room_ahead(l);
	uint32_t n;

	turn_unlock(&l->turn);
	n = look_ahead(l, from, to);
	turn_lock(&l->turn);
	if (n < AHEAD_MAX && from + n < to)
		p->fresh_end = from + n;
	p->read_fresh = from + n;
	for (uint32_t i = 0; i < n; i++)
		entry_list(l, entry_add(l, &p->ahead[i], &p->ahead_examples[i]),
			ON_AHEAD);
}

void planner_run(struct refrain_loader *l)
{
	l->planner.busy = true;
	echo_plan(l);
	if (l->stopped)
		; /* the log of changes is of another run */
	else if (wants_step(l))
		plan_step(l);
	else
		plan_ahead(l);
	l->planner.busy = false;
}

/* -- Life ------------------------------------------------------------------ */

static int steps_init(struct refrain_loader *l)
{
	const struct refrain_config *c = &l->s.c;

	l->steps = calloc(c->batches_ahead, sizeof(*l->steps));
	if (!l->steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->batches_ahead; i++) {
		struct step *st = &l->steps[i];

		list_init(&st->ready);
		st->slots = calloc(c->batch, sizeof(*st->slots));
		st->servings = calloc(c->batch, sizeof(*st->servings));
		if (!st->slots || !st->servings)
			return -ENOMEM;
	}
	l->planner.examples = calloc(c->batch, sizeof(struct example));
	return l->planner.examples ? 0 : -ENOMEM;
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

int planner_init(struct refrain_loader *l, struct error *err)
{
	struct planner *p = &l->planner;
	struct schedule_config config;
	struct schedule_facts facts;
	int rc;

	settings_schedule(&l->s, l->examples, &config);
	rc = state_restore(l, &config, &p->first_step, err);
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
	l->step_first = l->step_end = l->returned = p->first_step;
	l->outstanding_max = facts.window + l->s.c.batch;
	if (l->outstanding_max > facts.fresh)
		l->outstanding_max = facts.fresh;
	if (l->s.c.last == REFRAIN_LAST_DROP)
		l->meter.out.dropped_examples = facts.slots_dropped;
	l->meter.out.dropped_fresh = facts.fresh_dropped;
	if (steps_init(l) < 0)
		return error_set(err, -ENOMEM, "no memory for the steps");
	return 0;
}

void planner_release(struct refrain_loader *l)
{
	for (uint32_t i = 0; l->steps && i < l->s.c.batches_ahead; i++) {
		free(l->steps[i].slots);
		free(l->steps[i].servings);
		free(l->steps[i].why);
	}
	free(l->steps);
	free(l->planner.examples);
}
