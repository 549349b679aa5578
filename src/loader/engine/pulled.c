/* SPDX-License-Identifier: MIT */
/*
 * Servings that are pulled; see pulled_impl.h. A batch that the trainer will
 * need in d steps has a slack of d times the trainer's time for a step. If the
 * loader needs as long to make the rest of the batch itself, it begins, with
 * the batch that is needed first. If the trainer is faster than all others,
 * there is never any slack, so the loader's threads and the workers share the
 * work.
 */
#include "loader/engine/pulled_impl.h"

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "loader/engine/planner_impl.h"
#include "loader/pull/pull.h"

/* The time for a sample before any was made here. */
#define LOCAL_GUESS_NS (5 * NS_PER_MS)
/* A pull that has failed is noticed this much later. */
#define MARGIN_NS (30 * NS_PER_MS)

/* -- What the puller calls ------------------------------------------------- */

static struct serving *serving_of(struct pull *q)
{
	return CONTAINER_OF(q, struct serving, pull);
}

static void pulled_there(void *arg, struct pull *q)
{
	const struct engine_parts *parts = arg;
	struct serving *s = serving_of(q);

	s->state = SERVING_QUEUED;
	s->since_ns = meter_now_ns(parts->meter);
	steps_queue(parts->steps, s);
}

static void pulled_missed(void *arg, struct pull *q)
{
	const struct engine_parts *parts = arg;

	original_make(parts->pool, serving_of(q));
}

static void pulled_progress(void *arg, struct pull_progress *out)
{
	const struct engine_parts *parts = arg;

	*out = (struct pull_progress){
		.step = steps_first(parts->steps),
		.planned_fresh = planner_planned_fresh(parts->planner),
		.read_fresh = planner_read_fresh(parts->planner),
		.step_ns = meter_step_ns(parts->meter),
	};
}

int pulled_open(struct engine_parts *parts, uint64_t step,
	uint64_t outstanding_max, struct error *err)
{
	const struct pull_config config = {
		.s = parts->s,
		.dataset = parts->dataset,
		.turn = parts->turn,
		.memory = parts->memory,
		.schedule = parts->schedule,
		.step = step,
		.outstanding_max = outstanding_max,
		.progress = pulled_progress,
		.there = pulled_there,
		.missed = pulled_missed,
		.arg = parts,
	};

	return puller_new(&parts->puller, &config, err);
}

/* -- Samples that would come too late -------------------------------------- */

static uint64_t stage_mean_ns(const struct refrain_stage *s)
{
	return s->items ? s->busy_ns / s->items : 0;
}

/* Returns the time of a thread for a sample, in ns. */
static uint64_t local_ns(const struct engine_parts *parts)
{
	const struct refrain_stage *stages = meter_stats(parts->meter)->stages;
	uint64_t ns = stage_mean_ns(&stages[REFRAIN_STAGE_DECODE]) +
		stage_mean_ns(&stages[REFRAIN_STAGE_AUGMENT]);

	return ns ? ns : LOCAL_GUESS_NS;
}

static uint64_t mean_read_ns(const struct engine_parts *parts)
{
	return stage_mean_ns(
		&meter_stats(parts->meter)->stages[REFRAIN_STAGE_READ]);
}

/* Can the loader begin another sample now? The threads work on some, and while
 * they do, the files of the next ones are read. */
static bool may_make_more(const struct engine_parts *parts)
{
	uint64_t most = parts->c->threads *
		(1 +
			(mean_read_ns(parts) + local_ns(parts) - 1) /
				local_ns(parts));
	uint64_t others = (uint64_t)budget_working(parts->budget) +
		steps_ready(parts->steps) + puller_waiting(parts->puller);

	if (most > parts->c->reads_ahead)
		most = parts->c->reads_ahead;
	return steps_unfinished(parts->steps) < others + most;
}

static struct pull *find_late(const struct engine_parts *parts)
{
	uint64_t step, slack_ns, need_ns;
	struct pull *q =
		puller_first(parts->puller, meter_now_ns(parts->meter), &step);

	if (!q || steps_ready(parts->steps) || !may_make_more(parts))
		return NULL;
	if (parts->c->service_local == REFRAIN_SERVICE_ALSO)
		return q;
	slack_ns = (step - steps_first(parts->steps)) *
		meter_step_ns(parts->meter);
	need_ns = 2 * steps_at(parts->steps, step)->left * local_ns(parts) /
			parts->c->threads +
		2 * mean_read_ns(parts) + MARGIN_NS;
	return slack_ns < need_ns ? q : NULL;
}

bool pulled_is_late(const struct engine_parts *parts)
{
	ASSERT_TURN(parts->turn);
	return puller_waiting(parts->puller) && find_late(parts);
}

bool pulled_take_back(const struct engine_parts *parts)
{
	struct pull *q =
		puller_waiting(parts->puller) ? find_late(parts) : NULL;

	ASSERT_TURN(parts->turn);
	if (!q)
		return false;
	puller_drop(parts->puller, q);
	original_make(parts->pool, serving_of(q));
	return true;
}
