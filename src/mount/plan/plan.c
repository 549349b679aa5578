/* SPDX-License-Identifier: MIT */
/*
 * The life of the positions of plans. Owners append positions. A position ends
 * when its file is read (plan_note.c), or when it is given up. One lock guards
 * all plans. It is held briefly, and never during a call of the cache that may
 * call back.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "mount/plan/plan_impl.h"

#define SLACK_MIN 256u
#define SLACK_BATCHES 16u

int plans_new(struct plans **out, const struct plans_config *config)
{
	struct plans *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return -ENOMEM;
	MAGIC_BEGIN(ps, plans);
	ps->config = *config;
	ps->window_bytes = cache_ahead_bytes(config->cache);
	lock_init(&ps->lock, RANK_PLANS);
	cond_init(&ps->work_cond);
	cond_init(&ps->done_cond);
	list_init(&ps->plans);
	list_init(&ps->gone);
	for (unsigned i = 0; i < HELD_BUCKETS; i++)
		list_init(&ps->held[i]);
	*out = ps;
	return 0;
}

void plans_free(struct plans *ps)
{
	if (!ps)
		return;
	pthread_mutex_lock(&ps->lock);
	ps->stopping = true;
	plans_kick(ps, true);
	pthread_mutex_unlock(&ps->lock);
	if (ps->started)
		(void)pthread_join(ps->pacer, NULL); /* cannot fail */
	/* No thread waits any more */
	(void)pthread_cond_destroy(&ps->work_cond);
	(void)pthread_cond_destroy(&ps->done_cond);
	(void)pthread_mutex_destroy(&ps->lock);
	MAGIC_END(ps);
	free(ps);
}

/* Wake the pacer, because there is work for it. Work that is not urgent waits
 * until there is more of it, or for a few milliseconds. */
void plans_kick(struct plans *ps, bool urgent)
{
	bool wake = urgent || !ps->resting;

	ASSERT_HELD(&ps->lock);
	ps->urgent |= urgent;
	if (ps->work && !urgent)
		return;
	ps->work = true;
	if (wake)
		pthread_cond_signal(&ps->work_cond);
}

/* -- Positions ------------------------------------------------------------- */

/* Finish the position at plan->base if it was read or has to be given up.
 * Returns false if it stays. */
static bool pass(struct plan *plan)
{
	uint8_t state = order_state(&plan->order, plan->base);

	switch (state & ORDER_STATE_MASK) {
	case ORDER_WAITING:
	case ORDER_ISSUED:
		if (plan->base >= plan->retire_to &&
			plan->ahead <= plan->params.slack)
			return false;
		order_set(&plan->order, plan->base, ORDER_RETIRED);
		break;
	default:
		plan->ahead -= state & ORDER_COUNTED ? 1 : 0;
		break;
	}
	plan->base++;
	plan->plans->positions--;
	return true;
}

/* Is there a hold that is not needed any more? */
static bool may_release(const struct plan *plan)
{
	const struct hold *h = LIST_FIRST(&plan->holds, struct hold, link);

	if (list_empty(&plan->holds) || h->pos >= plan->base)
		return false;
	return h->pos < plan->retire_to ||
		h->pos + plan->params.slack < plan->base ||
		(order_state(&plan->order, h->pos) & ORDER_STATE_MASK) ==
		ORDER_RETIRED;
}

/* Finish positions. Call this after every change that may finish one. */
void plan_advance(struct plan *plan)
{
	uint64_t before = plan->base;

	ASSERT_HELD(&plan->plans->lock);
	if (plan->closing)
		return;
	while (plan->base < plan->order.end && pass(plan))
		;
	if (plan->cursor < plan->base) {
		plan->cursor = plan->base;
		plan->cursor_off = 0;
	}
	if (plan->base == before)
		return;
	if (plan->base == plan->order.end)
		pthread_cond_broadcast(&plan->plans->done_cond);
	if (may_release(plan))
		plans_kick(plan->plans, false);
}

/* Count an item as used: it was fetched ahead into a tier, and its position has
 * been read. */
void plan_count_used(struct plan *plan, uint64_t pos)
{
	uint8_t state = order_state(&plan->order, pos);

	ASSERT_HELD(&plan->plans->lock);
	if (state < ORDER_UNREAD)
		return;
	COUNT_ADD(plan->plans->config.counters, prefetch_used,
		state / ORDER_UNREAD);
	order_set(&plan->order, pos, state % ORDER_UNREAD);
}

void plans_forget(struct plans *ps, uint64_t cookie)
{
	if (atomic_load_explicit(&ps->active, memory_order_relaxed) == 0)
		return;
	LOCK_SCOPE(&ps->lock);
	LIST_FOREACH(l, &ps->plans) {
		struct plan *plan = CONTAINER_OF(l, struct plan, link);
		uint64_t pos;

		while (order_find(
			&plan->order, (uint32_t)cookie, plan->base, &pos)) {
			order_set(&plan->order, pos, ORDER_RETIRED);
			plan->s.gone++;
		}
		plan_advance(plan);
	}
}

/* -- One plan -------------------------------------------------------------- */

static int init_schedule(struct plan *plan, struct error *err)
{
	struct plan_params *p = &plan->params;
	/* Names are added in the order in which they are read, so the schedule
	 * must not shuffle them. */
	struct schedule_config config = {
		.examples = 1,
		.batch = p->batch,
		.window = p->window,
		.echo = p->echo,
		.echo_max = p->echo_max,
		.order = SCHEDULE_IN_ORDER,
	};

	return schedule_init(&plan->schedule, &config, err);
}

static int start_pacer(struct plans *ps)
{
	int rc = ps->started
		? 0
		: -pthread_create(&ps->pacer, NULL, follow_main, ps);

	ps->started |= rc == 0;
	return rc;
}

static int join_plans(struct plans *ps, struct plan *plan, struct error *err)
{
	LOCK_SCOPE(&ps->lock);
	if (ps->nplans >= PLANS_MAX)
		return error_set(err, -EUSERS,
			"this mount already has %u plans; end one "
			"first",
			PLANS_MAX);
	if (start_pacer(ps) < 0)
		return error_set(err, -EAGAIN, "cannot start a thread: %m");
	list_add_tail(&ps->plans, &plan->link);
	ps->nplans++;
	ps->admitting += plan->params.admit_planned;
	(void)atomic_fetch_add_explicit(&ps->readers,
		plan->params.reader ? 1 : 0, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&ps->active, 1, memory_order_relaxed);
	return 0;
}

int plan_open(struct plans *ps, const struct plan_params *params,
	struct plan **out, struct error *err)
{
	CLEANUP_FREE struct plan *plan = calloc(1, sizeof(*plan));
	int rc;

	if (!plan)
		return error_set(err, -ENOMEM, "cannot make a plan: %m");
	plan->plans = ps;
	plan->params = *params;
	plan->params.batch = params->batch ? params->batch : 1;
	if (!params->slack) {
		plan->params.slack =
			(uint64_t)SLACK_BATCHES * plan->params.batch;
		if (plan->params.slack < SLACK_MIN)
			plan->params.slack = SLACK_MIN;
	}
	if (!params->spread)
		plan->params.spread = plan->params.slack;
	plan->step_ns = params->step_ns;
	plan->backlog.at_once = params->measure;
	plan->cursor = params->begun;
	list_init(&plan->holds);
	rc = init_schedule(plan, err);
	if (rc == 0)
		rc = join_plans(ps, plan, err);
	if (rc == 0)
		*out = steal_ptr(&plan);
	return rc;
}

void plan_close(struct plan *plan)
{
	struct plans *ps = plan->plans;

	LOCK_SCOPE(&ps->lock);
	plan->closing = true;
	ps->positions -= plan->order.end - plan->base;
	ps->nplans--;
	ps->admitting -= plan->params.admit_planned;
	(void)atomic_fetch_sub_explicit(&ps->active, 1, memory_order_relaxed);
	(void)atomic_fetch_sub_explicit(&ps->readers,
		plan->params.reader ? 1 : 0, memory_order_relaxed);
	plans_kick(ps, true);
}

/* Returns the position before which all positions can be forgotten. */
static uint64_t forgettable(const struct plan *plan)
{
	const struct hold *h = LIST_FIRST(&plan->holds, struct hold, link);
	uint64_t pos = plan->base;

	/* Positions that were skipped because a tier has their items may still
	 * be read until the front is `slack` positions beyond them. */
	if (plan->front < pos + plan->params.slack)
		pos = plan->front > plan->params.slack
			? plan->front - plan->params.slack
			: 0;
	if (!list_empty(&plan->holds) && h->pos < pos)
		pos = h->pos;
	return pos > plan->order.first ? pos : plan->order.first;
}

int plan_add(struct plan *plan, uint64_t epoch, uint64_t cookie)
{
	struct plans *ps = plan->plans;
	int rc;

	LOCK_SCOPE(&ps->lock);
	if (ps->positions >= PLAN_POSITIONS_MAX || cookie > UINT32_MAX)
		return -ENOSPC;
	rc = order_add(
		&plan->order, epoch, (uint32_t)cookie, forgettable(plan));
	if (rc < 0)
		return rc;
	ps->positions++;
	plans_kick(ps, false);
	return 0;
}

static void progress(struct plan *plan, uint64_t position)
{
	uint64_t pos = plan->retire_to > plan->order.first ? plan->retire_to
							   : plan->order.first;

	ASSERT_HELD(&plan->plans->lock);
	if (position > plan->order.end)
		position = plan->order.end;
	while (pos < position)
		plan_count_used(plan, pos++);
	if (position > plan->retire_to)
		plan->retire_to = position;
	if (position > plan->front)
		plan->front = position;
	plan_advance(plan);
	if (may_release(plan))
		plans_kick(plan->plans, false);
}

void plan_progress(struct plan *plan, uint64_t position)
{
	LOCK_SCOPE(&plan->plans->lock);
	progress(plan, position);
}

void plan_progress_step(struct plan *plan, uint64_t step)
{
	uint64_t fresh;

	LOCK_SCOPE(&plan->plans->lock);
	fresh = schedule_fresh_before(&plan->schedule, step);
	if (fresh > plan->params.fresh)
		progress(plan, fresh - plan->params.fresh);
	if (step > plan->step_told)
		plan->step_told = step;
}

void plan_step_time(struct plan *plan, uint64_t step_ns)
{
	LOCK_SCOPE(&plan->plans->lock);
	pace_tell(plan, step_ns, clock_now_ns());
}

/* Change the echo factor. This changes when items are needed, so compute the
 * due times of the held items again. */
static int change_echo(
	struct plan *plan, uint64_t step, struct schedule_echo echo)
{
	int rc = schedule_change(&plan->schedule, step, echo);

	ASSERT_HELD(&plan->plans->lock);
	if (rc == 0)
		pace_holds(plan, clock_now_ns());
	return rc;
}

int plan_echo(struct plan *plan, uint64_t step, struct schedule_echo echo)
{
	LOCK_SCOPE(&plan->plans->lock);
	return change_echo(plan, step, echo);
}

int plan_echo_from(struct plan *plan, uint64_t fresh, struct schedule_echo echo)
{
	struct schedule_slot slot;
	uint64_t step;

	LOCK_SCOPE(&plan->plans->lock);
	if (schedule_fresh(&plan->schedule, fresh, &slot, &step) < 0)
		return -ERANGE;
	step += schedule_fresh_before(&plan->schedule, step) < fresh;
	return change_echo(plan, step, echo);
}

static void get_status(struct plan *plan, struct plan_status *status)
{
	ASSERT_HELD(&plan->plans->lock);
	*status = plan->s;
	status->positions = plan->order.end;
	status->done = plan->base;
	status->front = plan->front;
	status->cursor = plan->cursor;
	status->step = pace_step(plan);
	status->step_ns = plan->step_ns;
}

void plan_status(struct plan *plan, struct plan_status *status)
{
	LOCK_SCOPE(&plan->plans->lock);
	get_status(plan, status);
}

unsigned plans_view(struct plans *ps, struct plan_view out[PLANS_MAX])
{
	unsigned n = 0;

	LOCK_SCOPE(&ps->lock);
	LIST_FOREACH(l, &ps->plans) {
		struct plan *plan = CONTAINER_OF(l, struct plan, link);

		if (n == PLANS_MAX)
			break;
		out[n].reader = plan->params.reader;
		get_status(plan, &out[n++].status);
	}
	return n;
}

bool plan_wait(struct plan *plan, uint64_t timeout_ns)
{
	struct plans *ps = plan->plans;
	uint64_t until = clock_now_ns() + timeout_ns;

	LOCK_SCOPE(&ps->lock);
	while (plan->base < plan->order.end &&
		cond_wait_until(&ps->done_cond, &ps->lock, until))
		;
	return plan->base == plan->order.end;
}

void plans_status(struct plans *ps, struct plans_status *status)
{
	LOCK_SCOPE(&ps->lock);
	*status = (struct plans_status){
		ps->nplans, ps->admitting, ps->positions};
}
