/* SPDX-License-Identifier: MIT */
/*
 * Measures how fast a plan is fetched when only the origin limits it: while
 * more of it is waiting than the origin is asked for at a time. A series of
 * such moments is a run. It is timed from the moment when everything in flight
 * at its beginning has come, because that may have been requested long before.
 * Storage that was idle may first answer faster, like a throttle that has saved
 * up tokens. So only the bytes after the first answer after RATE_SAVED_NS count
 * for the lasting rate. Runs with the lock of the plans held.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "prefetch/plan_impl.h"

#define RATE_SAVED_NS (150 * NS_PER_MS)
#define BURST_DEPTHS 4u
#define BURST_ITEMS 256u

/* Count the bytes between one pause and the next. */
static void count_bunch(struct plan_rate *r)
{
	r->sum.full_ns += r->bunch_ns;
	r->sum.full_bytes += r->bunch_bytes;
	if (r->lasts) {
		r->sum.long_ns += r->bunch_ns;
		r->sum.long_bytes += r->bunch_bytes;
	}
	r->lasts |= r->run_ns >= RATE_SAVED_NS;
}

/*
 * Count the bytes of a run since the last look. The answers of a distant origin
 * come in groups, and a run may begin or end within one. So bytes between two
 * pauses that are at least as long as the mean count together with the first of
 * these pauses.
 */
static void run_on(struct plan_rate *r, uint64_t ns, uint64_t bytes)
{
	r->waited_ns += ns;
	if (!bytes)
		return;
	ns = r->waited_ns;
	r->waited_ns = 0;
	if (r->answers && ns >= r->run_ns / r->answers) {
		if (r->bunch_ns)
			count_bunch(r);
		r->bunch_ns = ns;
		r->bunch_bytes = bytes;
	} else if (r->bunch_ns) {
		r->bunch_ns += ns;
		r->bunch_bytes += bytes;
	}
	r->run_ns += ns;
	r->answers++;
}

static void run_begin(struct plan_rate *r, uint64_t answers, uint32_t depth)
{
	r->limited = true;
	r->timed = r->lasts = false;
	r->timed_from = answers + depth;
	r->run_ns = r->waited_ns = r->bunch_ns = 0;
	r->answers = 0;
}

void rate_look(struct plan *plan, uint64_t now_ns)
{
	struct plan_rate *r = &plan->rate;
	struct cache_pace *p = &plan->pace;
	uint32_t depth = atomic_load_explicit(&p->depth, memory_order_relaxed);
	uint64_t came =
		atomic_load_explicit(&p->came_bytes, memory_order_relaxed);
	uint64_t answers =
		atomic_load_explicit(&p->answers, memory_order_relaxed);
	uint64_t requests =
		atomic_load_explicit(&p->requests, memory_order_relaxed);

	ASSERT_HELD(&plan->plans->lock);
	if (r->limited && r->timed && requests)
		run_on(r, now_ns - r->looked_ns, came - r->came_bytes);
	if (!depth || requests <= depth)
		r->limited = false;
	else if (!r->limited)
		run_begin(r, answers, depth);
	if (r->limited && !r->timed && answers >= r->timed_from) {
		r->timed = true;
		r->sum.bursts++;
	}
	r->looked_ns = now_ns;
	r->came_bytes = came;
}

/*
 * When all that is held has come, the only plan rests until there is something
 * to be measured when it goes on: a burst of several times what the origin is
 * asked for at a time, but half of the memory at most. 0: it does not rest.
 */
uint64_t rate_rest_bytes(const struct plans *ps)
{
	const struct plan *plan =
		CONTAINER_OF(ps->plans.next, struct plan, link);
	uint64_t most = ps->window_bytes / 2, items = BURST_ITEMS, bytes, depth;

	ASSERT_HELD(&ps->lock);
	if (ps->nplans != 1 || !plan->pace.at_once || plan->closing ||
		atomic_load_explicit(
			&plan->pace.requests, memory_order_relaxed))
		return 0;
	depth = atomic_load_explicit(&plan->pace.depth, memory_order_relaxed);
	if (!depth || plan->s.ahead_items < BURST_DEPTHS * depth)
		return 0;
	if (items < BURST_DEPTHS * depth)
		items = BURST_DEPTHS * depth;
	bytes = plan->s.ahead_bytes / plan->s.ahead_items * items;
	return bytes < most ? bytes : most;
}

void plan_rates(struct plan *plan, struct plan_rates *out)
{
	struct plans *ps = plan->plans;

	LOCK_SCOPE(&ps->lock);
	rate_look(plan, clock_now_ns());
	*out = plan->rate.sum;
	out->full = ps->full;
	out->fetching = plan->rate.limited && plan->rate.timed;
}
