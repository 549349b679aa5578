/* SPDX-License-Identifier: MIT */
/*
 * Gets memory for fills, within the limit of staging, and chooses the fills to
 * drop when memory is short. Runs with the cache's lock held.
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "mount/cache/fill_part_impl.h"

static void arm_drain_timer(struct cache *c, uint64_t at_ns)
{
	if (!jobs_is_stopping(c))
		timer_set(cache_config(c)->timers, &cache_staging(c)->timer,
			at_ns);
}

void fill_tell_passed(struct cache *c, const struct fill *f)
{
	ASSERT_INSIDE(c);
	if (cache_config(c)->passed)
		cache_config(c)->passed(cache_config(c)->arg, &f->item);
}

/* Count served pages from 0 again: the item has been served to its end, but
 * another plan needs it. */
void fill_turn(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] &= (uint8_t)~PAGE_SERVED;
	f->served = 0;
	f->turned = true;
	fill_line_up(c, f);
}

/* Put the fill into the list of fills to drop first: all its bytes were served,
 * and it has no plan. */
void fill_pass(struct cache *c, struct fill *f)
{
	struct cache_staging *s = cache_staging(c);
	struct list *head = f->plan_readers > 0 ? &s->awaited : &s->drained;
	bool first = list_empty(head);

	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < f->npages; i++)
		f->page[i] |= PAGE_SERVED;
	f->served = f->npages;
	list_del(&f->age);
	list_add_tail(head, &f->age);
	if (first)
		arm_drain_timer(c, f->last_read_ns + DRAINED_GRACE_NS);
}

void fill_drop(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	/* This counts whole pages. The last page of an item may be shorter, but
	 * few items consist of only that page. */
	if (f->phase == FILL_FETCHING)
		COUNT_ADD(cache_config(c)->counters, partial_dropped,
			(f->present - f->in_part) * FILL_PAGE_BYTES);
	if (f->phase == FILL_STAGED && f->served < f->npages) {
		COUNT(cache_config(c)->counters, staging_dropped);
	} else if (f->phase == FILL_STAGED) {
		cache_readers(c)->passed[f->key.lo % AGAIN_ITEMS] = f->key.lo;
		fill_tell_passed(c, f);
	}
	fill_leave_table(c, f, FILL_GONE);
}

/* Drop fills that were not read for grace_ns. Returns the time for the next
 * call. */
static uint64_t expire_drained(
	struct cache *c, struct list *head, uint64_t grace_ns, uint64_t now_ns)
{
	ASSERT_INSIDE(c);
	LIST_FOREACH_SAFE(l, next, head) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (f->last_read_ns + grace_ns > now_ns)
			return f->last_read_ns + grace_ns;
		if (fill_is_idle(f))
			fill_drop(c, f);
	}
	return list_empty(head) ? UINT64_MAX : now_ns + DRAINED_GRACE_NS;
}

static void drain_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, staging.timer);
	struct cache_staging *s = cache_staging(c);
	uint64_t now_ns = clock_now_ns(), drained_ns, awaited_ns;
	struct after a;

	jobs_enter(c, &a);
	drained_ns = expire_drained(c, &s->drained, DRAINED_GRACE_NS, now_ns);
	awaited_ns = expire_drained(c, &s->awaited, AWAITED_GRACE_NS, now_ns);
	if (awaited_ns < drained_ns)
		drained_ns = awaited_ns;
	if (drained_ns < UINT64_MAX)
		arm_drain_timer(c, drained_ns);
	jobs_run(c, &a);
}

void room_init(struct cache *c)
{
	struct cache_staging *s = cache_staging(c);

	list_init(&s->staged);
	list_init(&s->drained);
	list_init(&s->awaited);
	timer_init(&s->timer, drain_fire);
}

void room_quiet(struct cache *c)
{
	ASSERT_INSIDE(c);
	(void)timer_cancel(cache_config(c)->timers, &cache_staging(c)->timer);
}

void room_status(struct cache *c, struct cache_status *status)
{
	ASSERT_INSIDE(c);
	status->staging_bytes = cache_staging(c)->used;
	status->staging_peak_bytes = cache_staging(c)->peak;
}

/* Drop idle fills of one list that were last read before `quiet_ns`, oldest
 * first, until at most `most` bytes are staged. Returns true if that
 * succeeded. */
static bool fill_make_room(
	struct cache *c, struct list *head, uint64_t most, uint64_t quiet_ns)
{
	ASSERT_INSIDE(c);
	LIST_FOREACH_SAFE(l, next, head) {
		struct fill *f = CONTAINER_OF(l, struct fill, age);

		if (cache_staging(c)->used <= most)
			return true;
		if (fill_is_idle(f) && f->last_read_ns <= quiet_ns)
			fill_drop(c, f);
	}
	return cache_staging(c)->used <= most;
}

static bool fill_is_waited_for(const struct fill *f)
{
	return f->prio == PRIO_DEMAND || !list_empty(&f->waiters);
}

uint64_t cache_ahead_bytes(const struct cache *c)
{
	return cache_config(c)->staging_bytes / 2;
}

/* Returns the limit of staged bytes that holds when this fill gets memory. */
static uint64_t staging_bound(struct cache *c, const struct fill *f)
{
	if (fill_is_waited_for(f) || !list_empty(&f->plans))
		return cache_config(c)->staging_bytes;
	return cache_ahead_bytes(c) + planned_bytes(c) / 2;
}

bool fill_leaves_little_room(struct cache *c, const struct fill *f)
{
	ASSERT_INSIDE(c);
	return cache_staging(c)->used > staging_bound(c, f) / 4 * 3;
}

/*
 * Get memory for the item, within the limit. An item for which a reader waits
 * may replace idle items, oldest first. Planned items use at most half of the
 * limit, and are never idle; a planned item may replace idle items that are not
 * being read now. All other items, together with the planned ones, may use half
 * of the limit. These items replace only items that were served, because data
 * that was fetched ahead for many readers must stay until they read it. Returns
 * 0, -EAGAIN if there is no memory now, or -ENOMEM.
 */
int fill_take_room(struct cache *c, struct fill *f)
{
	struct cache_staging *s = cache_staging(c);
	bool waited = fill_is_waited_for(f);
	bool push = waited || !list_empty(&f->plans);
	uint64_t need = f->item.size;
	/* Does not wrap around: cache_check_sizes() has made sure that the
	 * limit is at least two items. */
	uint64_t most = staging_bound(c, f) - need;
	uint64_t quiet_ns = UINT64_MAX;

	ASSERT_INSIDE(c);
	if (!waited && push)
		quiet_ns = clock_now_ns() - READING_NS;
	if (!fill_make_room(c, &s->drained, most, UINT64_MAX) &&
		(!push ||
			(!fill_make_room(c, &s->awaited, most, UINT64_MAX) &&
				!fill_make_room(
					c, &s->staged, most, quiet_ns))))
		return -EAGAIN;
	f->memory = malloc(need + part_map_bytes(&f->item) + FILL_PAGE_BYTES);
	if (!f->memory)
		return -ENOMEM;
	f->buf = f->memory + -(uintptr_t)f->memory % FILL_PAGE_BYTES;
	s->used += need;
	if (s->used > s->peak)
		s->peak = s->used;
	if (f->claim == CLAIM_PLANNED)
		fill_prefetched(c, f);
	f->phase = FILL_FETCHING;
	fill_line_up(c, f);
	return 0;
}
