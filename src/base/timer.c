/* SPDX-License-Identifier: MIT */
/*
 * Timers: a binary heap under one lock and one thread that sleeps until the
 * earliest is due. Callbacks run on that thread with the lock released. A
 * timer knows its place in the heap, so that moving and cancelling one costs
 * log n without a search.
 */
#include "base/timer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"

struct timers {
	pthread_mutex_t lock; /* rank: a leaf, nothing is taken under it */
	pthread_cond_t wake;  /* the earliest time or `stop` has changed */
	struct timer **heap;  /* lock: heap[i]->slot == i + 1 */
	size_t n, max;	      /* lock */
	uint64_t until_ns;    /* lock: the thread sleeps no longer than that */
	bool stop;	      /* lock */
	pthread_t thread;     /* set once */
};

static void heap_put(struct timers *ts, size_t i, struct timer *t)
{
	ts->heap[i] = t;
	t->slot = i + 1;
}

static void heap_up(struct timers *ts, size_t i, struct timer *t)
{
	while (i > 0 && ts->heap[(i - 1) / 2]->at_ns > t->at_ns) {
		heap_put(ts, i, ts->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(ts, i, t);
}

static void heap_down(struct timers *ts, size_t i, struct timer *t)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < ts->n &&
			ts->heap[child + 1]->at_ns < ts->heap[child]->at_ns)
			child++;
		if (child >= ts->n || ts->heap[child]->at_ns >= t->at_ns)
			break;
		heap_put(ts, i, ts->heap[child]);
		i = child;
	}
	heap_put(ts, i, t);
}

static void heap_remove(struct timers *ts, struct timer *t)
{
	size_t i = t->slot - 1;
	struct timer *last = ts->heap[--ts->n];

	t->slot = 0;
	if (last == t)
		return;
	heap_up(ts, i, last);
	heap_down(ts, last->slot - 1, last);
}

/* Called with the lock held. Waking early or late is harmless, as the caller
 * looks again. */
static void wait_for_first(struct timers *ts)
{
	ASSERT_HELD(&ts->lock);
	ts->until_ns = ts->n > 0 ? ts->heap[0]->at_ns : UINT64_MAX;
	if (ts->n == 0)
		(void)pthread_cond_wait(&ts->wake, &ts->lock);
	else
		(void)cond_wait_until(&ts->wake, &ts->lock, ts->until_ns);
	ts->until_ns = 0;
}

static void *timers_thread(void *arg)
{
	struct timers *ts = arg;

	pthread_mutex_lock(&ts->lock);
	while (!ts->stop) {
		struct timer *t;

		if (ts->n == 0 || ts->heap[0]->at_ns > clock_now_ns()) {
			wait_for_first(ts);
			continue;
		}
		t = ts->heap[0];
		heap_remove(ts, t);
		pthread_mutex_unlock(&ts->lock);
		t->fire(t); /* may free t */
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
	pthread_mutex_init(&ts->lock, NULL);
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
	free(ts->heap);
	free(ts);
}

int timer_set(struct timers *ts, struct timer *t, uint64_t at_ns)
{
	LOCK_SCOPE(&ts->lock);

	if (t->slot) {
		heap_remove(ts, t);
	} else {
		int rc = ARRAY_ROOM(ts->heap, ts->n, &ts->max);

		if (rc)
			return rc;
	}
	t->at_ns = at_ns;
	heap_up(ts, ts->n++, t);
	/* Otherwise the thread wakes in time anyway, for this timer or a
	 * cancelled one. */
	if (at_ns < ts->until_ns) {
		ts->until_ns = at_ns;
		pthread_cond_signal(&ts->wake);
	}
	return 0;
}

bool timer_cancel(struct timers *ts, struct timer *t)
{
	LOCK_SCOPE(&ts->lock);

	if (!t->slot)
		return false;
	heap_remove(ts, t);
	return true;
}
