/* SPDX-License-Identifier: MIT */
/*
 * Handles planned items. They are fetched ahead in the order of the plans, and
 * stay in memory until they have been read: no other item takes their memory
 * before that. They may use half of staging, so that memory is left for other
 * readers. Called by the thread that follows the plans.
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>

static uint64_t missing_bytes(const struct fill *f)
{
	uint64_t there = (uint64_t)f->present * FILL_PAGE_BYTES;

	return there < f->item.size ? f->item.size - there : 0;
}

/* Have readers read the whole item, and has no plan of the item been added
 * since? */
static bool is_passed(const struct fill *f)
{
	return f->phase == FILL_STAGED && f->served == f->npages;
}

/* Move a new fill forward in its queue, before fills that are needed later,
 * because there may be many of those. Fills that have memory already stay
 * before it. */
static void overtake(struct cache *c, struct fill *f, const void *owner)
{
	struct list *queue = fill_queue(c, f->level, f->prio);
	struct list *at = list_prev(&f->queue);
	uint64_t due = planned_due_ns(c, &f->plans);

	for (; at != queue; at = list_prev(at)) {
		const struct fill *g = CONTAINER_OF(at, struct fill, queue);

		if (g->buf || planned_owned(c, &g->plans, owner) ||
			planned_due_ns(c, &g->plans) <= due)
			break;
	}
	list_del(&f->queue);
	list_add_tail(list_next(at), &f->queue);
}

/* Find or create the fill of the item, and want all its pages. */
static int attach(struct cache *c, const struct cache_item *item,
	struct hash128 key, struct cache_plan *p)
{
	struct fill *f = fill_find(c, key);
	bool read = atomic_load_explicit(&p->read, memory_order_relaxed);
	bool made = !f;
	int rc;

	ASSERT_INSIDE(c);
	if (read && (!f || is_passed(f)))
		return -EALREADY;
	if ((!f || list_empty(&f->plans)) &&
		planned_bytes(c) + item->size > cache_ahead_bytes(c))
		return -EAGAIN;
	rc = fill_find_or_make(c, item, key, PRIO_PLANNED, false, &f);
	if (rc < 0)
		return rc;
	if (made)
		f->claim = CLAIM_PLANNED;
	fill_carry(f);
	/* The plan does not have to fetch bytes that an earlier plan of the
	 * item fetches. */
	p->missing_bytes = list_empty(&f->plans) ? missing_bytes(f) : 0;
	if (list_empty(&f->plans))
		c->planned_bytes += f->item.size;
	list_add_tail(&f->plans, &p->link);
	if (is_passed(f))
		fill_turn(c, f);
	else
		fill_line_up(c, f);
	planned_owe(c, p, p->missing_bytes);
	p->fill = f;
	fill_want(c, f, 0, f->npages, PRIO_PLANNED);
	if (made)
		overtake(c, f, p->owner);
	return 0;
}

int cache_plan(
	struct cache *c, const struct cache_item *item, struct cache_plan *p)
{
	struct hash128 key = cache_key(c, item);
	struct after a;
	int rc;

	if (store_has(cache_config(c)->store, key, item->size))
		return -EEXIST;
	p->fill = NULL;
	p->unread = false;
	p->owed_bytes = 0;
	list_init(&p->link);
	jobs_enter(c, &a);
	rc = attach(c, item, key, p);
	jobs_run(c, &a);
	return rc;
}

/* Drop the bytes of an item without plans, if only the last plan wanted them.
 * `begun`: the reader of the plan has said that it reads the item, but may not
 * have called the cache yet. Then the bytes stay; otherwise its call would
 * fetch them again. */
static void planned_forget(struct cache *c, struct fill *f, bool begun)
{
	bool alone = list_empty(&f->waiters) && list_empty(&f->warms);

	ASSERT_INSIDE(c);
	c->planned_bytes -= f->item.size;
	fill_line_up(c, f);
	if (!alone)
		return;
	if (f->turned && f->phase == FILL_STAGED) {
		fill_pass(c, f);
		return;
	}
	if (begun && f->claim == CLAIM_UNREAD)
		return;
	/* Keep a fill that will be in a tier or is being read. */
	if (f->claim == CLAIM_PLANNED ||
		(f->claim == CLAIM_UNREAD && f->res.charged_bytes == 0 &&
			f->phase != FILL_PUBLISHING))
		fill_leave_table(c, f, FILL_GONE);
}

void cache_unplan(struct cache *c, struct cache_plan *p, bool used)
{
	struct fill *f;
	struct after a;
	bool begun;

	jobs_enter(c, &a);
	f = p->fill;
	if (f) {
		begun = atomic_load_explicit(&p->read, memory_order_relaxed);
		/* The reader will not read the item from the mount, so the item
		 * no longer counts as being read. */
		if (used && !f->turned)
			f->last_read_ns = 0;
		used &= f->turned;
		/* The reader got the whole item from the kernel's page
		 * cache. */
		if (used && !begun)
			fill_begun(c, f);
		planned_tell(c, p, used ? 1 : -ECANCELED);
		if (list_empty(&f->plans))
			planned_forget(c, f, begun);
	}
	jobs_run(c, &a);
}
