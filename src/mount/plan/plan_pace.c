/* SPDX-License-Identifier: MIT */
/*
 * Computes when the item at a plan's cursor is needed. The echo schedule, with
 * its ramp, says which step needs it. The owner tells how long a step takes;
 * otherwise that is measured from the reads of the plan. Runs with the lock of
 * the plans held.
 */
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "mount/plan/plan_impl.h"

/* The assumed duration of a step until the real one is known. It is so long
 * that only items of the first step are urgent. */
#define STEP_GUESS_NS NS_PER_S

/* The duration of one measurement of the step time. */
#define MEASURE_NS (250 * NS_PER_MS)

/* Returns the step that needs a position or, outside the schedule, the last
 * reported step. */
static uint64_t step_of(const struct plan *plan, uint64_t pos)
{
	struct schedule_slot slot;
	uint64_t step;

	if (schedule_fresh(&plan->schedule, plan->params.fresh + pos, &slot,
		    &step) < 0)
		return plan->step_told;
	return step;
}

/* Returns the step that readers are executing. */
uint64_t pace_step(const struct plan *plan)
{
	uint64_t step = step_of(plan, plan->front);

	ASSERT_HELD(&plan->plans->lock);
	return step > plan->step_told ? step : plan->step_told;
}

/* Returns the number of fresh examples that a step needs. */
static double step_examples(const struct plan *plan)
{
	const struct schedule_echo *e = &plan->params.echo;

	return e->p ? (double)plan->params.batch * e->q / e->p
		    : plan->params.batch;
}

/*
 * Returns the duration of a step from which to compute due times; 0: not known.
 * A measured duration includes waiting for the origin, so a plan that gets a
 * smaller part of the origin's rate would seem slower, and then get an even
 * smaller part. Therefore the fastest measured plan sets the pace of all
 * measured plans, and all get equal parts.
 */
static uint64_t pace_step_ns(const struct plan *plan)
{
	double least = 0;

	if (plan->params.step_ns)
		return plan->params.step_ns;
	LIST_FOREACH(l, &plan->plans->plans) {
		const struct plan *p = CONTAINER_OF(l, struct plan, link);
		double ns = (double)p->step_ns / step_examples(p);

		if (!p->closing && !p->params.step_ns && p->step_ns &&
			(least <= 0 || ns < least))
			least = ns;
	}
	return (uint64_t)(least * step_examples(plan));
}

/* Returns the time until a position is needed. */
static uint64_t due_in_ns(
	const struct plan *plan, uint64_t pos, uint64_t step_ns)
{
	uint64_t now = pace_step(plan);
	uint64_t step = step_of(plan, pos);
	uint64_t due_ns;

	if (step <= now)
		return 0;
	if (__builtin_mul_overflow(
		    step - now, step_ns ? step_ns : STEP_GUESS_NS, &due_ns))
		return UINT64_MAX;
	return due_ns;
}

/* Does the reader wait for the position? Only a reader that reports its
 * progress may read ahead; all others wait. */
bool pace_waits(const struct plan *plan, uint64_t pos)
{
	ASSERT_HELD(&plan->plans->lock);
	if (!plan->params.reader)
		return true;
	return step_of(plan, pos) <= step_of(plan, plan->retire_to);
}

/* Returns the time until the item at the cursor is needed. */
uint64_t pace_due_ns(struct plan *plan)
{
	ASSERT_HELD(&plan->plans->lock);
	return due_in_ns(plan, plan->cursor, pace_step_ns(plan));
}

static void set_due(struct hold *h, uint64_t step_ns, uint64_t now_ns)
{
	uint64_t due_ns;

	/* Until the duration of a step is known, everything counts as needed at
	 * once. */
	if (!step_ns)
		due_ns = now_ns;
	else if (__builtin_add_overflow(
			 now_ns, due_in_ns(h->plan, h->pos, step_ns), &due_ns))
		due_ns = UINT64_MAX;
	atomic_store_explicit(&h->p.due_ns, due_ns, memory_order_relaxed);
}

void pace_hold(struct hold *h, uint64_t now_ns)
{
	ASSERT_HELD(&h->plan->plans->lock);
	set_due(h, pace_step_ns(h->plan), now_ns);
}

void pace_holds(struct plan *plan, uint64_t now_ns)
{
	uint64_t step_ns = pace_step_ns(plan);

	ASSERT_HELD(&plan->plans->lock);
	LIST_FOREACH(l, &plan->holds)
		set_due(CONTAINER_OF(l, struct hold, link), step_ns, now_ns);
}

/* Compute the due times again if the duration of a step has changed by a
 * quarter. */
static void pace_again(struct plan *plan, uint64_t now_ns)
{
	uint64_t before = plan->due_step_ns, step_ns = pace_step_ns(plan);

	if (step_ns >= before - before / 4 && step_ns <= before + before / 4)
		return;
	plan->due_step_ns = step_ns;
	pace_holds(plan, now_ns);
}

/* If the owner gives the duration of a step, it is not measured. */
void pace_tell(struct plan *plan, uint64_t step_ns, uint64_t now_ns)
{
	ASSERT_HELD(&plan->plans->lock);
	plan->params.step_ns = step_ns;
	if (step_ns)
		plan->step_ns = step_ns;
	pace_again(plan, now_ns);
}

/* Compute the duration of a step from the number of steps and the time since
 * the last measurement. The result is the mean of this duration and the earlier
 * one. */
void pace_measure(struct plan *plan, uint64_t now_ns)
{
	uint64_t step, step_ns;

	ASSERT_HELD(&plan->plans->lock);
	if (plan->params.step_ns || now_ns < plan->measured_ns + MEASURE_NS)
		return;
	/* Do not measure the time before the first read: it would make the
	 * first steps seem so long that no item is urgent. */
	if (plan->s.read == 0 && plan->step_told == 0)
		return;
	step = pace_step(plan);
	if (plan->measured_ns && step > plan->measured_step) {
		step_ns = (now_ns - plan->measured_ns) /
			(step - plan->measured_step);
		plan->step_ns =
			plan->step_ns ? (plan->step_ns + step_ns) / 2 : step_ns;
	}
	pace_again(plan, now_ns);
	if (!plan->measured_ns || step > plan->measured_step) {
		plan->measured_ns = now_ns;
		plan->measured_step = step;
	}
}
