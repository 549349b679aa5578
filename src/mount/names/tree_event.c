/* SPDX-License-Identifier: MIT */
/*
 * Queues changes of names for the tree's thread, and counts requests in flight.
 * The manifest reports changes with its lock held, and notifications of the
 * kernel may block on directory locks, so changes cannot be handled at once.
 */
#include "mount/names/tree_impl.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"

uint64_t tree_now_s(void)
{
	return clock_now_ns() / NS_PER_S;
}

bool tree_request_begin(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	if (t->stopping)
		return false;
	t->requests++;
	return true;
}

void tree_request_end(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	if (--t->requests == 0)
		pthread_cond_broadcast(&t->done_cond);
}

static void count_event(struct tree *t, const struct manifest_event *ev)
{
	if (ev->change == MANIFEST_ADDED)
		t->added++;
	else if (ev->change == MANIFEST_REMOVED)
		t->removed++;
	else if (ev->change == MANIFEST_REPLACED ||
		ev->change == MANIFEST_FOLLOWED)
		t->changed++;
	else if (ev->change == MANIFEST_ATTR)
		t->attrs++;
}

void tree_on_event(void *arg, const struct manifest_event *ev)
{
	struct tree *t = OBJECT(tree, arg);
	size_t len = strlen(ev->name) + 1;
	struct tree_event *e;

	LOCK_SCOPE(&t->lock);
	count_event(t, ev);
	/* The tree was stopped, so its thread may have ended. If another
	 * process takes over the mount, it acts on the change. */
	if (t->ending)
		return;
	t->reported = manifest_trail(t->config.manifest);
	/* The kernel cannot know a name that nobody has looked up. */
	if (ev->change == MANIFEST_ADDED && !ev->seen)
		return;
	e = malloc(sizeof(*e) + len);
	if (!e)
		/* without memory, the kernel keeps its old entry until the name
		 * changes again */
		return;
	e->change = ev->change;
	e->dir = ev->dir;
	e->id = ev->id;
	e->turn = t->turn;
	e->old = ev->old;
	memcpy(e->name, ev->name, len);
	list_add_tail(&t->events, &e->link);
	pthread_cond_signal(&t->event_cond);
}
