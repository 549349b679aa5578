/* SPDX-License-Identifier: MIT */
/*
 * Items that are planned: fetched ahead in the order of the plans, and held
 * until they were read, never pushed out before. They have half of staging at
 * most, so that a reader of anything else always finds room. Entered by who
 * follows the plans; the rest runs with the cache's lock held.
 */
#include "cache/fill_impl.h"

#include <errno.h>

#include "base/lock.h"

/* -- How fast it is fetched ------------------------------------------------ */

static uint64_t requests_for(const struct cache *c, uint64_t bytes)
{
	return (bytes + c->request_bytes - 1) / c->request_bytes;
}

/* Add bytes that are still to come. */
static void owe(struct cache *c, struct cache_plan *p, uint64_t bytes)
{
	struct cache_pace *pace = p->pace;
	uint64_t more = requests_for(c, bytes) - requests_for(c, p->owed_bytes);

	p->owed_bytes = bytes;
	if (!pace)
		return;
	/* A difference below 0 wraps round, and so does the sum. */
	(void)atomic_fetch_add_explicit(
		&pace->requests, more, memory_order_relaxed);
	atomic_store_explicit(&pace->depth,
		depth_settled(&c->surplus) ? depth_limit(&c->surplus) : 0,
		memory_order_relaxed);
}

/* The origin has delivered some of the item; a whole request of it, or not. */
void planned_came(struct cache *c, struct fill *f, size_t bytes, bool answered)
{
	ASSERT_HELD(&c->lock);
	LIST_FOREACH(l, &f->plans) {
		struct cache_plan *p = CONTAINER_OF(l, struct cache_plan, link);

		if (p->pace) {
			(void)atomic_fetch_add_explicit(&p->pace->came_bytes,
				bytes, memory_order_relaxed);
			(void)atomic_fetch_add_explicit(&p->pace->answers,
				answered, memory_order_relaxed);
		}
		owe(c, p, p->owed_bytes > bytes ? p->owed_bytes - bytes : 0);
	}
}

static uint64_t missing_bytes(const struct fill *f)
{
	uint64_t there = (uint64_t)f->present * FILL_PAGE_BYTES;

	return there < f->item.size ? f->item.size - there : 0;
}

/* -- Plans of an item ------------------------------------------------------ */

static void planned_tell(struct cache *c, struct cache_plan *p, int status)
{
	ASSERT_HELD(&c->lock);
	owe(c, p, 0);
	p->fill = NULL;
	p->status = status;
	list_del(&p->link);
	list_add_tail(&c->planned_done, &p->link);
}

/* It is in a tier: who planned it says when it is read from there. */
void planned_unread(struct fill *f)
{
	if (f->prefetched && !list_empty(&f->plans))
		CONTAINER_OF(f->plans.next, struct cache_plan, link)->unread =
			true;
	f->prefetched = false;
}

/* When the first of its plans needs it; without any: at once. */
static uint64_t due_ns(const struct fill *f)
{
	uint64_t due_ns = list_empty(&f->plans) ? 0 : UINT64_MAX;

	LIST_FOREACH(l, &f->plans) {
		const struct cache_plan *p =
			CONTAINER_OF(l, struct cache_plan, link);
		uint64_t ns =
			atomic_load_explicit(&p->due_ns, memory_order_relaxed);

		if (ns < due_ns)
			due_ns = ns;
	}
	return due_ns;
}

static bool is_at_once(const struct fill *f)
{
	LIST_FOREACH(l, &f->plans) {
		const struct cache_plan *p =
			CONTAINER_OF(l, struct cache_plan, link);

		if (p->pace && p->pace->at_once)
			return true;
	}
	return false;
}

/* Is there time until one of its plans needs it? */
bool planned_early(const struct fill *f, uint64_t now_ns, uint64_t soon_ns)
{
	return list_empty(&f->waiters) && due_ns(f) >= now_ns + soon_ns &&
		!is_at_once(f);
}

static bool is_owned(const struct fill *f, const void *owner)
{
	LIST_FOREACH(l, &f->plans)
		if (CONTAINER_OF(l, struct cache_plan, link)->owner == owner)
			return true;
	return false;
}

/*
 * A new fill, at the end of the queue, goes before what others need later, of
 * which a queue may be full. What was begun stays before it: memory that it
 * has is not to wait for memory.
 */
static void overtake(
	struct cache *c, struct fill *f, const struct cache_plan *p)
{
	struct list *queue = fill_queue(c, f), *at = f->queue.prev;
	uint64_t due = due_ns(f);

	for (; at != queue; at = at->prev) {
		const struct fill *g = CONTAINER_OF(at, struct fill, queue);

		if (g->buf || is_owned(g, p->owner) || due_ns(g) <= due)
			break;
	}
	list_del(&f->queue);
	list_add_tail(at->next, &f->queue);
}

/* All of it was served: the plans whose own reader has come are at their end;
 * engine_run() tells who made them. */
void planned_read(struct cache *c, struct fill *f)
{
	ASSERT_HELD(&c->lock);
	if (list_empty(&f->plans))
		return;
	LIST_FOREACH_SAFE(l, next, &f->plans) {
		struct cache_plan *p = CONTAINER_OF(l, struct cache_plan, link);

		if (atomic_load_explicit(&p->read, memory_order_relaxed))
			planned_tell(c, p, 1);
	}
	if (list_empty(&f->plans))
		c->planned -= f->item.size;
}

/* The fill is planned no more; engine_run() tells who did. */
void planned_end(struct cache *c, struct fill *f, int status)
{
	ASSERT_HELD(&c->lock);
	if (list_empty(&f->plans))
		return;
	LIST_FOREACH_SAFE(l, next, &f->plans)
		planned_tell(
			c, CONTAINER_OF(l, struct cache_plan, link), status);
	c->planned -= f->item.size;
	fill_line_up(c, f);
}

void planned_run(struct cache *c)
{
	struct cache_plan *p =
		CONTAINER_OF(c->planned_done.next, struct cache_plan, link);

	ASSERT_HELD(&c->lock);
	list_del(&p->link);
	pthread_mutex_unlock(&c->lock);
	p->done(p, p->status);
	pthread_mutex_lock(&c->lock);
}

/* Its readers have had all of it, and nobody has planned it since. */
static bool is_passed(const struct fill *f)
{
	return f->phase == FILL_STAGED && f->served == f->npages;
}

/* Its fill, which is wanted from now on. */
static int attach(struct cache *c, const struct cache_item *item,
	struct hash128 key, struct cache_plan *p)
{
	struct fill *f = fill_find(c, key);
	bool read = atomic_load_explicit(&p->read, memory_order_relaxed);
	bool made = !f;
	int rc;

	ASSERT_HELD(&c->lock);
	if (read && (!f || is_passed(f)))
		return -EALREADY;
	if ((!f || list_empty(&f->plans)) &&
		c->planned + item->size > c->config.staging_bytes / 2)
		return -EAGAIN;
	rc = fill_find_or_make(c, item, key, PRIO_PLANNED, false, &f);
	if (rc < 0)
		return rc;
	f->ahead |= made;
	f->carried = true;
	if (list_empty(&f->plans))
		c->planned += f->item.size;
	list_add_tail(&f->plans, &p->link);
	if (is_passed(f))
		fill_turn(c, f);
	else
		fill_line_up(c, f);
	p->missing_bytes = missing_bytes(f);
	owe(c, p, p->missing_bytes);
	p->fill = f;
	fill_want(c, f, 0, f->npages, PRIO_PLANNED);
	if (made)
		overtake(c, f, p);
	return 0;
}

int cache_plan(
	struct cache *c, const struct cache_item *item, struct cache_plan *p)
{
	struct hash128 key = cache_key(c, item);
	struct after a;
	int rc;

	if (store_has(c->config.store, key, item->size))
		return -EEXIST;
	p->fill = NULL;
	p->unread = false;
	p->owed_bytes = 0;
	list_init(&p->link);
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	rc = attach(c, item, key, p);
	engine_run(c, &a);
	return rc;
}

/* Nobody plans it any more: what only the plan wanted is not kept. */
static void planned_forget(struct cache *c, struct fill *f)
{
	bool alone = list_empty(&f->waiters) && list_empty(&f->warms);

	ASSERT_HELD(&c->lock);
	c->planned -= f->item.size;
	fill_line_up(c, f);
	if (!alone)
		return;
	if (f->turned && f->phase == FILL_STAGED) {
		fill_pass(c, f);
		return;
	}
	/* Keep fills that will be in a tier or are being read. */
	if (f->ahead ||
		(f->prefetched && f->res.charged_bytes == 0 &&
			f->phase != FILL_PUBLISHING))
		fill_leave_table(c, f);
}

void cache_unplan(struct cache *c, struct cache_plan *p, bool used)
{
	struct fill *f;
	struct after a;

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	f = p->fill;
	if (f) {
		used &= f->turned;
		/* Its reader found all of it in the kernel's pages. */
		if (used &&
			!atomic_load_explicit(&p->read, memory_order_relaxed))
			fill_begun(c, f);
		planned_tell(c, p, used ? 1 : -ECANCELED);
		if (list_empty(&f->plans))
			planned_forget(c, f);
	}
	engine_run(c, &a);
}
