/* SPDX-License-Identifier: MIT */
/*
 * The engine of the cache. Whoever changed something under the lock leaves
 * through engine_run(): it starts the requests that can be started now, and
 * runs what must not run under the lock: callbacks, hand-overs to publishers
 * and to sources. Each of these may make room for more. cache.c has the table
 * of them. Any thread.
 */
#include "cache/fill_impl.h"

#include "base/lock.h"

void after_init(struct after *a)
{
	for (int i = 0; i < AFTER_KINDS; i++)
		list_init(&a->list[i]);
}

/* The first job, by the order of its kind, or NULL. */
static struct list *first_job(
	struct cache *c, struct after *a, enum after_kind *kind)
{
	for (int i = 0; i < AFTER_KINDS; i++) {
		struct list *head =
			i == AFTER_PLANNED ? &c->plans.done : &a->list[i];

		if (list_empty(head))
			continue;
		*kind = (enum after_kind)i;
		return head->next;
	}
	return NULL;
}

void engine_run(struct cache *c, struct after *a)
{
	enum after_kind kind;
	struct list *job;

	ASSERT_HELD(&c->lock);
	for (;;) {
		/* Each answer may give memory back, for others to start. */
		c->jobs->dispatch(c, a);
		job = first_job(c, a, &kind);
		if (!job)
			break;
		c->jobs->run[kind](c, job);
	}
	pthread_mutex_unlock(&c->lock);
}
