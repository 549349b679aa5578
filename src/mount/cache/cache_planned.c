/* SPDX-License-Identifier: MIT */
/*
 * The plans of an item: when they need the item, how fast it is fetched, and
 * how the plans end. Runs with the cache's lock held.
 */
#include "mount/cache/cache_impl.h"

uint64_t planned_bytes(struct cache *c)
{
	ASSERT_INSIDE(c);
	return c->planned_bytes;
}

/* -- Backlogs of the owners ------------------------------------------------ */

static uint64_t requests_for(struct cache *c, uint64_t bytes)
{
	size_t one = cache_request_bytes(c);

	return (bytes + one - 1) / one;
}

void planned_owe(struct cache *c, struct cache_plan *p, uint64_t bytes)
{
	uint64_t more = requests_for(c, bytes) - requests_for(c, p->owed_bytes);

	ASSERT_INSIDE(c);
	p->owed_bytes = bytes;
	if (p->backlog)
		backlog_add(p->backlog, more, flight_depth(cache_flight(c)));
}

/* If an owner has planned the item twice in a row, its backlog counts the bytes
 * once. */
void planned_came(
	struct cache *c, struct list *plans, size_t bytes, bool answered)
{
	const struct backlog *told = NULL;

	ASSERT_INSIDE(c);
	LIST_FOREACH(l, plans) {
		struct cache_plan *p = CONTAINER_OF(l, struct cache_plan, link);

		planned_owe(c, p,
			p->owed_bytes > bytes ? p->owed_bytes - bytes : 0);
		if (p->backlog && p->backlog != told)
			backlog_came(p->backlog, bytes, answered);
		told = p->backlog;
	}
}

/* -- Plans of an item ------------------------------------------------------ */

void planned_tell(struct cache *c, struct cache_plan *p, int status)
{
	ASSERT_INSIDE(c);
	planned_owe(c, p, 0);
	if (p->backlog)
		backlog_left(p->backlog);
	p->fill = NULL;
	p->status = status;
	list_del(&p->link);
	jobs_add_planned(c, &p->link);
}

void planned_unread(struct cache *c, struct list *plans)
{
	ASSERT_INSIDE(c);
	if (!list_empty(plans))
		LIST_FIRST(plans, struct cache_plan, link)->unread = true;
}

uint64_t planned_due_ns(struct cache *c, const struct list *plans)
{
	uint64_t due_ns = list_empty(plans) ? 0 : UINT64_MAX;

	ASSERT_INSIDE(c);
	LIST_FOREACH(l, plans) {
		const struct cache_plan *p =
			CONTAINER_OF(l, struct cache_plan, link);
		uint64_t ns =
			atomic_load_explicit(&p->due_ns, memory_order_relaxed);

		if (ns < due_ns)
			due_ns = ns;
	}
	return due_ns;
}

bool planned_at_once(struct cache *c, const struct list *plans)
{
	ASSERT_INSIDE(c);
	LIST_FOREACH(l, plans) {
		const struct cache_plan *p =
			CONTAINER_OF(l, struct cache_plan, link);

		if (p->backlog && p->backlog->at_once)
			return true;
	}
	return false;
}

bool planned_owned(struct cache *c, const struct list *plans, const void *owner)
{
	ASSERT_INSIDE(c);
	LIST_FOREACH(l, plans)
		if (CONTAINER_OF(l, struct cache_plan, link)->owner == owner)
			return true;
	return false;
}

void planned_read(struct cache *c, struct list *plans, uint64_t bytes)
{
	ASSERT_INSIDE(c);
	if (list_empty(plans))
		return;
	LIST_FOREACH_SAFE(l, next, plans) {
		struct cache_plan *p = CONTAINER_OF(l, struct cache_plan, link);

		if (atomic_load_explicit(&p->read, memory_order_relaxed))
			planned_tell(c, p, 1);
	}
	if (list_empty(plans))
		c->planned_bytes -= bytes;
}

bool planned_end(
	struct cache *c, struct list *plans, uint64_t bytes, int status)
{
	ASSERT_INSIDE(c);
	if (list_empty(plans))
		return false;
	LIST_FOREACH_SAFE(l, next, plans)
		planned_tell(
			c, CONTAINER_OF(l, struct cache_plan, link), status);
	c->planned_bytes -= bytes;
	return true;
}

struct fill *planned_run(struct cache *c, struct list *link)
{
	struct cache_plan *p = CONTAINER_OF(link, struct cache_plan, link);

	(void)c;
	p->done(p, p->status);
	return NULL;
}
