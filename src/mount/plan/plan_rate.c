/* SPDX-License-Identifier: MIT */
/*
 * Measures how fast a plan is fetched when only the origin limits it, and
 * decides on the pauses that this measurement needs; see common/base/speed.h.
 */
#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "mount/plan/plan_impl.h"

#define BURST_DEPTHS 4u
#define BURST_ITEMS 256u

static uint64_t sum_of(const _Atomic uint64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

/*
 * Returns the bytes that must be freed before the pacer continues; 0: it does
 * not rest.
 *
 * If memory is used up although the origin could deliver more, the pacer rests,
 * so that a burst can be measured afterwards. This is done only for a single
 * plan. The burst has at least four times as many items as the origin's depth,
 * but at most half of the memory. If half of the memory holds hardly more items
 * than the depth, the pacer does not rest.
 */
uint64_t rate_rest_bytes(const struct plans *ps)
{
	const struct plan *plan = LIST_FIRST(&ps->plans, struct plan, link);
	uint64_t most = ps->window_bytes / 2, items = BURST_ITEMS, bytes, depth;

	ASSERT_HELD(&ps->lock);
	if (ps->nplans != 1 || !plan->backlog.at_once || plan->closing)
		return 0;
	depth = atomic_load_explicit(
		&plan->backlog.depth, memory_order_relaxed);
	if (!depth || plan->s.ahead_items / 2 < depth + depth / 4 ||
		sum_of(&plan->backlog.requests) * 4 > depth * 3)
		return 0;
	if (items < BURST_DEPTHS * depth)
		items = BURST_DEPTHS * depth;
	bytes = plan->s.ahead_bytes / plan->s.ahead_items * items;
	return bytes < most ? bytes : most;
}

/* Returns the first hold whose item waits for its reader, or NULL. Holds that
 * have ended may stay in the list until the pacer runs again. */
static const struct hold *first_held(const struct plan *plan)
{
	LIST_FOREACH(l, &plan->holds) {
		const struct hold *h = CONTAINER_OF(l, struct hold, link);

		if (h->pos >= plan->base && list_empty(&h->gone))
			return h;
	}
	return NULL;
}

void plan_rates(struct plan *plan, struct plan_rates *out)
{
	const struct speed *s = &plan->backlog.speed;
	const struct hold *h;

	LOCK_SCOPE(&plan->plans->lock);
	h = first_held(plan);
	*out = (struct plan_rates){
		.full_ns = sum_of(&s->full_ns),
		.full_bytes = sum_of(&s->full_bytes),
		.long_ns = sum_of(&s->long_ns),
		.long_bytes = sum_of(&s->long_bytes),
		.bursts = sum_of(&s->runs),
		.fetching =
			atomic_load_explicit(&s->running, memory_order_relaxed),
		.looked = h ? h->looked : plan->looked,
		.missing_bytes = h ? h->missing_bytes : plan->missing_bytes,
		.full = plan->plans->full,
	};
}
