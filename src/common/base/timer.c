/* SPDX-License-Identifier: MIT */
/* Timers: a pairing heap under one lock, and one thread that sleeps until the
 * earliest timer is due. Callbacks run on that thread with the lock released.
 * The links of the heap are members of the timers, so setting a timer needs no
 * memory, and moving or cancelling one needs no search. */
#include "common/base/magic.h"
#include "common/base/timer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

struct timers {
	uint32_t magic;
	pthread_mutex_t lock; /* no other lock is taken while it is held */
	/* signalled when the earliest time or `stop` has changed */
	pthread_cond_t wake;
	/* guarded by lock: the earliest timer; NULL: none is set */
	struct timer *first;
	/* guarded by lock: the thread sleeps until this time */
	uint64_t until_ns;
	bool stop;	  /* guarded by lock */
	pthread_t thread; /* set once */
};

/* Merge two heaps, whose earliest timers are a and b. Returns the earlier one;
 * the caller sets its `next` and `link`. */
static struct timer *meld(struct timer *a, struct timer *b)
{
	struct timer *first, *child;

	if (!a || !b)
		return a ? a : b;
	first = b->at_ns < a->at_ns ? b : a;
	child = first == a ? b : a;
	child->next = first->child;
	if (child->next)
		child->next->link = &child->next;
	child->link = &first->child;
	first->child = child;
	return first;
}

/* Merge siblings into one heap, and return the earliest. Merging pairs, and
 * then the pairs from the last to the first, keeps the mean cost of a removal
 * at log n. */
static struct timer *meld_siblings(struct timer *t)
{
	struct timer *pairs = NULL, *first = NULL, *next;

	while (t) {
		struct timer *other = t->next;

		next = other ? other->next : NULL;
		t = meld(t, other);
		t->next = pairs;
		pairs = t;
		t = next;
	}
	for (; pairs; pairs = next) {
		next = pairs->next;
		first = meld(first, pairs);
	}
	return first;
}

static void set_first(struct timers *ts, struct timer *t)
{
	ts->first = t;
	if (!t)
		return;
	t->next = NULL;
	t->link = &ts->first;
}

static void heap_add(struct timers *ts, struct timer *t)
{
	t->child = NULL;
	set_first(ts, meld(ts->first, t));
}

static void heap_remove(struct timers *ts, struct timer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->link = NULL;
	set_first(ts, meld(ts->first, meld_siblings(t->child)));
}

/* Wait until the earliest timer is due. The caller holds the lock. The wait may
 * end too early or too late, because the caller checks the time again. */
static void wait_for_first(struct timers *ts)
{
	ASSERT_HELD(&ts->lock);
	ts->until_ns = ts->first ? ts->first->at_ns : UINT64_MAX;
	if (!ts->first)
		(void)pthread_cond_wait(&ts->wake, &ts->lock);
	else
		(void)cond_wait_until(&ts->wake, &ts->lock, ts->until_ns);
	ts->until_ns = 0;
}

static void *timers_thread(void *arg)
{
	struct timers *ts = OBJECT(timers, arg);

	pthread_mutex_lock(&ts->lock);
	while (!ts->stop) {
		struct timer *t = ts->first;

		if (!t || t->at_ns > clock_now_ns()) {
			wait_for_first(ts);
			continue;
		}
		heap_remove(ts, OBJECT(timer, t));
		pthread_mutex_unlock(&ts->lock);
		t->fire(t); /* may free the timer */
		pthread_mutex_lock(&ts->lock);
	}
	pthread_mutex_unlock(&ts->lock);
	return NULL;
}

int timers_new(struct timers **out)
{
	CLEANUP_FREE struct timers *ts = calloc(1, sizeof(*ts));
	int rc;

	if (!ts)
		return -ENOMEM;
	MAGIC_BEGIN(ts, timers);
	lock_init(&ts->lock, RANK_TIMERS);
	cond_init(&ts->wake);
	rc = pthread_create(&ts->thread, NULL, timers_thread, ts);
	if (rc) {
		pthread_cond_destroy(&ts->wake);
		pthread_mutex_destroy(&ts->lock);
		return -rc;
	}
	*out = steal_ptr(&ts);
	return 0;
}

void timers_free(struct timers *ts)
{
	if (!ts)
		return;
	pthread_mutex_lock(&ts->lock);
	ts->stop = true;
	pthread_cond_signal(&ts->wake);
	pthread_mutex_unlock(&ts->lock);
	pthread_join(ts->thread, NULL);
	pthread_cond_destroy(&ts->wake);
	pthread_mutex_destroy(&ts->lock);
	MAGIC_END(ts);
	free(ts);
}

void timer_set(struct timers *ts, struct timer *t, uint64_t at_ns)
{
	LOCK_SCOPE(&ts->lock);

	if (t->link)
		heap_remove(ts, t);
	t->at_ns = at_ns;
	heap_add(ts, t);
	/* Wake the thread only if it would sleep longer. It may also sleep
	 * less, for example for a timer that was cancelled. */
	if (at_ns < ts->until_ns) {
		ts->until_ns = at_ns;
		pthread_cond_signal(&ts->wake);
	}
}

bool timer_cancel(struct timers *ts, struct timer *t)
{
	LOCK_SCOPE(&ts->lock);

	if (!t->link)
		return false;
	heap_remove(ts, t);
	return true;
}
