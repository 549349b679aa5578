/* SPDX-License-Identifier: MIT */
/*
 * Walks along the schedule. It plans steps while a slab is free and fewer than
 * batches_ahead steps are unfinished. It also names fresh examples to the
 * reader, up to reads_ahead beyond the planned ones. Workers call this between
 * servings. One worker at a time sets `busy`, and queries the schedule and the
 * dataset without the lock. The walk does not stop between epochs.
 */
#include "loader/engine/planner_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* While `busy` is set, only the worker that has set it uses the other members.
 * The schedule is changed only with the lock held while `busy` is not set. It
 * is read with the lock held, or by the busy worker. */
struct planner {
	const struct engine_parts *parts; /* set once */
	bool busy;
	bool at_end;		/* all steps were planned */
	uint64_t steps;		/* number of steps in the run */
	uint64_t fresh_end;	/* fresh examples from this on are not needed */
	uint64_t planned_fresh; /* fresh examples below this are in steps */
	/* Fresh examples below this were named to the reader */
	uint64_t read_fresh;
	uint64_t epoch; /* epoch of the newest planned fresh example */
	struct schedule_cursor cursor;
	/* Examples of the step that is being planned */
	struct example *examples;
	/* examples that are being named to the reader */
	struct schedule_slot ahead[16];
	struct example ahead_examples[16];
};

#define AHEAD_MAX                                                              \
	(sizeof(((struct planner *)0)->ahead) / sizeof(struct schedule_slot))

/* -- Work of the planner --------------------------------------------------- */

static bool wants_step(const struct planner *p)
{
	return !p->at_end && lender_has_free(p->parts->lender) &&
		!steps_full(p->parts->steps) &&
		originals_unused(p->parts->pool) >= p->parts->c->batch;
}

static bool wants_ahead(const struct planner *p)
{
	return p->read_fresh < p->fresh_end &&
		p->read_fresh <
		p->planned_fresh + budget_ahead(p->parts->budget) &&
		originals_unused(p->parts->pool) >=
		p->parts->c->batch + AHEAD_MAX;
}

bool planner_wants(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return !p->busy && !outcome_closing(p->parts->outcome) &&
		!outcome_stopped(p->parts->outcome) &&
		(wants_step(p) || wants_ahead(p));
}

/* -- Planning a step ------------------------------------------------------- */

static void count_lag(struct planner *p, struct step *st, struct serving *s)
{
	uint64_t fresh = st->slots[s->place].fresh, before;

	if (!s->echo ||
		(!original_step_before(s->original, &before) &&
			/* The previous serving was planned before a restart, so
			 * ask the schedule for the step of that serving */
			schedule_serving_step(p->parts->schedule, fresh,
				s->echo - 1, &before) < 0))
		return;
	s->lag = st->number - before;
	st->lag_sum += s->lag;
	st->lags++;
	st->duplicates += s->lag == 0;
	if (s->lag < st->lag_min)
		st->lag_min = s->lag;
}

static void publish_serving(struct planner *p, struct step *st, uint32_t place,
	const struct example *example)
{
	const struct schedule_slot *slot = &st->slots[place];
	struct serving *s = &st->servings[place];
	struct original *o = original_find(p->parts->pool, slot->fresh);

	if (!o)
		o = original_add(p->parts->pool, slot, example);
	*s = (struct serving){.step = st,
		.original = o,
		.place = place,
		.echo = slot->echo,
		.lag = UINT64_MAX,
		.since_ns = meter_now_ns(p->parts->meter)};
	list_init(&s->node);
	count_lag(p, st, s);
	if (!slot->echo) {
		st->fresh++;
		p->epoch = slot->epoch;
		p->planned_fresh = slot->fresh + 1;
	}
	if (o->state == ORIGINAL_ABSENT &&
		puller_take(p->parts->puller, &s->pull, slot, st->number))
		original_pull(p->parts->pool, o, s);
	else
		original_plan(p->parts->pool, o, s);
}

/* Find the epochs whose last fresh example is in this step. */
static void find_ended(
	const struct planner *p, struct step *st, uint64_t first_epoch)
{
	st->epochs_ended = 0;
	for (uint64_t e = first_epoch; st->fresh && e <= st->epoch; e++) {
		if (schedule_epoch_end(p->parts->schedule, e) != st->number + 1)
			continue;
		st->epochs_ended++;
		st->ended_epoch = e;
	}
}

static void publish_step(struct planner *p, struct step *st, uint32_t n)
{
	uint64_t first_epoch = p->epoch;

	st->slab = slab_take(p->parts->lender);
	steps_publish(p->parts->steps, st, n);
	for (uint32_t i = 0; i < n; i++)
		publish_serving(p, st, i, &p->examples[i]);
	st->epoch = p->epoch;
	find_ended(p, st, first_epoch);
	if (p->read_fresh < p->planned_fresh)
		p->read_fresh = p->planned_fresh;
}

/* Plan the next step. The step and the cursor need no lock, because no other
 * thread uses a step before it is published. */
static void plan_step(struct planner *p)
{
	struct step *st = steps_at(p->parts->steps, steps_end(p->parts->steps));
	uint32_t n;

	turn_unlock(p->parts->turn);
	n = schedule_next(p->parts->schedule, &p->cursor, st->slots);
	for (uint32_t i = 0; i < n; i++)
		dataset_example_in(p->parts->dataset, st->slots[i].index,
			p->parts->c->seed, st->slots[i].pass, &p->examples[i]);
	turn_lock(p->parts->turn);
	if (!n) {
		p->at_end = true;
		return;
	}
	publish_step(p, st, n);
}

/* -- Reading ahead --------------------------------------------------------- */

static uint32_t look_ahead(struct planner *p, uint64_t from, uint64_t to)
{
	uint32_t n = 0;
	uint64_t need_by;

	while (n < AHEAD_MAX && from + n < to &&
		schedule_fresh(p->parts->schedule, from + n, &p->ahead[n],
			&need_by) == 0 &&
		need_by < p->steps) {
		dataset_example_in(p->parts->dataset, p->ahead[n].index,
			p->parts->c->seed, p->ahead[n].pass,
			&p->ahead_examples[n]);
		n++;
	}
	return n;
}

static void plan_ahead(struct planner *p)
{
	uint64_t from = p->read_fresh;
	uint64_t to = p->planned_fresh + budget_ahead(p->parts->budget);
	uint32_t n;

	turn_unlock(p->parts->turn);
	n = look_ahead(p, from, to);
	turn_lock(p->parts->turn);
	if (n < AHEAD_MAX && from + n < to)
		p->fresh_end = from + n;
	p->read_fresh = from + n;
	for (uint32_t i = 0; i < n; i++)
		if (!puller_expects(p->parts->puller, from + i))
			original_list(p->parts->pool,
				original_add(p->parts->pool, &p->ahead[i],
					&p->ahead_examples[i]),
				ON_AHEAD);
}

void planner_run(struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	p->busy = true;
	if (outcome_stopped(p->parts->outcome))
		; /* nothing to do: the log of changes belongs to another run */
	else if (wants_step(p))
		plan_step(p);
	else
		plan_ahead(p);
	p->busy = false;
}

/* -- Creation and end ------------------------------------------------------ */

/* Returns the epoch in which the first step of this handle begins. */
static uint64_t epoch_at(struct planner *p)
{
	struct schedule_slot slot;
	uint64_t need_by;
	uint64_t f = p->planned_fresh;

	if (f > 0 &&
		schedule_fresh(p->parts->schedule, f - 1, &slot, &need_by) == 0)
		return slot.epoch;
	return schedule_fresh(p->parts->schedule, f, &slot, &need_by) == 0
		? slot.epoch
		: 0;
}

/* Get from the schedule how many steps and fresh examples the run has. */
static void take_facts(struct planner *p)
{
	struct refrain_stats *stats = meter_stats(p->parts->meter);
	struct schedule_facts facts;

	schedule_facts(p->parts->schedule, &facts);
	p->steps = facts.steps;
	if (p->parts->c->last == REFRAIN_LAST_DROP)
		stats->dropped_examples = facts.slots_dropped;
	stats->dropped_fresh = facts.fresh_dropped;
}

int planner_new(struct planner **out, const struct engine_parts *parts,
	uint64_t first_step, struct error *err)
{
	struct planner *p = calloc(1, sizeof(*p));

	*out = p;
	if (!p)
		return error_set(err, -ENOMEM, "no memory for the planner");
	p->parts = parts;
	TURN_LOOK_SCOPE(p->parts->turn);
	if (schedule_seek(p->parts->schedule, &p->cursor, first_step) < 0)
		return error_set(err, -EBADMSG,
			"the state was saved at a step after the end of this "
			"run");
	take_facts(p);
	p->fresh_end = UINT64_MAX;
	p->planned_fresh = p->read_fresh =
		schedule_fresh_before(p->parts->schedule, first_step);
	p->epoch = epoch_at(p);
	p->examples = calloc(p->parts->c->batch, sizeof(struct example));
	return p->examples ? 0
			   : error_set(err, -ENOMEM, "no memory for the steps");
}

void planner_free(struct planner *p)
{
	if (p)
		free(p->examples);
	free(p);
}

/* -- Queries --------------------------------------------------------------- */

bool planner_is_busy(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->busy;
}

uint64_t planner_steps(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->steps;
}

bool planner_at_end(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->at_end;
}

uint64_t planner_planned_fresh(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->planned_fresh;
}

uint64_t planner_read_fresh(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->read_fresh;
}

bool planner_read_all(const struct planner *p)
{
	ASSERT_TURN(p->parts->turn);
	return p->read_fresh >= p->fresh_end;
}

/* Apply a new factor to examples that were already read ahead. */
void planner_look_again(struct planner *p)
{
	struct schedule_slot slot;
	uint64_t f = schedule_change_begins(p->parts->schedule), need_by;

	ASSERT_TURN(p->parts->turn);
	for (; f < p->read_fresh; f++) {
		struct original *o = original_find(p->parts->pool, f);

		if (o &&
			schedule_fresh(
				p->parts->schedule, f, &slot, &need_by) == 0)
			original_serve(o, &slot);
	}
	take_facts(p);
}
