/* SPDX-License-Identifier: MIT */
/*
 * The retry origin's attempts: begun, given up, repeated after a pause. Any
 * thread that asks, the inner origin's and the timer thread.
 */
#include "origin/retry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

/* How soon to look again at an attempt that was due in mid-callback. */
#define BUSY_NS (5 * NS_PER_MS)

/* -- Life ------------------------------------------------------------------ */

/* Lock held. */
void retry_file_put(struct origin_file *f)
{
	if (!f || --f->refs > 0)
		return;
	origin_file_free(f->o->inner, f->inner);
	free(f);
}

/* Lock held. */
void retry_put(struct request *q)
{
	struct retry *o = q->o;

	if (--q->refs > 0)
		return;
	retry_file_put(q->file);
	free(q);
	if (--o->requests == 0)
		pthread_cond_broadcast(&o->quiet);
}

/* Lock held: the timer no longer counts, unless it is firing just now. */
void retry_disarm(struct request *q)
{
	if (timer_cancel(q->o->timers, &q->timer))
		retry_put(q);
}

/* Lock held. True if it was armed; else the caller ends the request. */
bool retry_arm(struct request *q, uint64_t at_ns)
{
	/* The reference of a timer that was set is the new one's. */
	bool was_set = timer_cancel(q->o->timers, &q->timer);

	if (timer_set(q->o->timers, &q->timer, at_ns)) {
		if (was_set)
			retry_put(q);
		return false;
	}
	q->due_ns = at_ns;
	if (!was_set)
		q->refs++;
	return true;
}

/* -- Answers --------------------------------------------------------------- */

/* No lock held: errors of all kinds. */
void retry_tell(enum what what, void *outer, int status)
{
	struct origin_read *r = outer;
	struct origin_stat *s = outer;
	struct origin_list *l = outer;

	if (what == READ)
		r->done(r, status, NULL);
	else if (what == STAT)
		s->done(s, status, NULL, NULL);
	else
		l->done(l, status);
}

/*
 * Lock held. Take the request from those in hand, to answer it without the
 * lock; NULL if it has been.
 */
void *retry_take_outer(struct request *q)
{
	void *outer = q->outer;

	q->outer = NULL;
	q->last = NULL;
	if (outer && q->what == READ)
		((struct origin_read *)outer)->priv = NULL;
	return outer;
}

/* -- Attempts -------------------------------------------------------------- */

/* Lock held: `outer` is there. */
static struct attempt *attempt_new(struct request *q)
{
	struct attempt *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->q = q;
	if (q->what == READ) {
		a->in.read = *(struct origin_read *)q->outer;
		a->in.read.file = q->file->inner;
		a->in.read.done = retry_read_done;
		a->in.read.priv = NULL;
		a->in.read.lost_bytes = 0;
	} else if (q->what == STAT) {
		a->in.stat.path = q->path;
		a->in.stat.done = retry_stat_done;
	} else {
		a->in.list.path = q->path;
		a->in.list.batch = retry_list_batch;
		a->in.list.restart = retry_list_restart;
		a->in.list.done = retry_list_done;
	}
	return a;
}

/*
 * Lock held (its rank is above the inner origin's, whose start functions never
 * call back). -ENOMEM: nothing was begun.
 */
int retry_try(struct request *q)
{
	struct retry *o = q->o;
	uint64_t end_ns = clock_now_ns() + o->config.attempt_ns;
	struct attempt *a = attempt_new(q);

	if (!a)
		return -ENOMEM;
	if (!retry_arm(q, end_ns < q->until_ns ? end_ns : q->until_ns)) {
		free(a);
		return -ENOMEM;
	}
	q->last = a;
	q->refs++;
	if (q->what == READ) {
		origin_read(o->inner, &a->in.read);
	} else if (q->what == STAT) {
		COUNT(o->counters, origin_stats);
		origin_stat(o->inner, &a->in.stat);
	} else {
		COUNT(o->counters, origin_lists);
		origin_list(o->inner, &a->in.list);
	}
	return 0;
}

/* The pause doubles; half of it is chance, so that requests part. */
static uint64_t pause_ns(struct request *q)
{
	uint64_t turn =
		atomic_fetch_add_explicit(&q->o->turn, 1, memory_order_relaxed);
	uint64_t pause = q->o->config.pause_ns
		<< (q->failed < 9 ? q->failed - 1 : 8);

	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	return pause / 2 + hash64(&turn, sizeof(turn), 0) % (pause / 2 + 1);
}

/* Lock held: the request ends with `status`; unlocks, answers. */
static void give_up(struct request *q, int status)
{
	struct retry *o = q->o;
	void *outer = retry_take_outer(q);

	COUNT(o->counters, origin_failures);
	pthread_mutex_unlock(&o->lock);
	if (outer)
		retry_tell(q->what, outer, status);
}

/* Lock held; a listing begins anew. Unlocks and locks for the callback. */
static void forget_batches(struct request *q)
{
	struct origin_list *l = q->outer;

	if (q->what != LIST)
		return;
	/* The next attempt is not begun yet: nobody else calls l. */
	pthread_mutex_unlock(&q->o->lock);
	l->restart(l);
	pthread_mutex_lock(&q->o->lock);
}

/* Lock held: an attempt failed with `status`. Unlocks. The caller has a ref. */
void retry_failed(struct request *q, int status)
{
	struct retry *o = q->o;
	uint64_t at_ns;

	retry_disarm(q);
	q->last = NULL;
	if (++q->failed >= o->config.attempts) {
		give_up(q, -EIO);
		return;
	}
	at_ns = clock_now_ns() + pause_ns(q);
	if (at_ns >= q->until_ns) {
		give_up(q, -EIO);
		return;
	}
	if (!retry_arm(q, at_ns)) {
		give_up(q, status == -ENOMEM ? -ENOMEM : -EIO);
		return;
	}
	pthread_mutex_unlock(&o->lock);
}

/* Lock held: the attempt did not answer in time. Unlocks. */
static void attempt_late(struct request *q)
{
	struct retry *o = q->o;
	struct attempt *a = q->last;

	COUNT(o->counters, origin_timeouts);
	q->last = NULL;
	if (q->what == READ)
		origin_read_abandon(o->inner, &a->in.read);
	if (++q->failed >= o->config.attempts ||
		clock_now_ns() >= q->until_ns) {
		give_up(q, -ETIMEDOUT);
		return;
	}
	forget_batches(q);
	COUNT(o->counters, origin_retries);
	if (retry_try(q)) {
		give_up(q, -ENOMEM);
		return;
	}
	pthread_mutex_unlock(&o->lock);
}

void retry_on_timer(struct timer *t)
{
	struct request *q = CONTAINER_OF(t, struct request, timer);
	struct retry *o = q->o;

	pthread_mutex_lock(&o->lock);
	if (!q->outer || clock_now_ns() < q->due_ns) {
		/* Fired when it was being cancelled, or moved. */
		pthread_mutex_unlock(&o->lock);
	} else if (q->busy) {
		if (!retry_arm(q, clock_now_ns() + BUSY_NS))
			q->due_ns = 0; /* the batch's end arms it */
		pthread_mutex_unlock(&o->lock);
	} else if (q->last) {
		attempt_late(q);
	} else {
		forget_batches(q);
		COUNT(o->counters, origin_retries);
		if (retry_try(q))
			give_up(q, -ENOMEM);
		else
			pthread_mutex_unlock(&o->lock);
	}
	pthread_mutex_lock(&o->lock);
	retry_put(q);
	pthread_mutex_unlock(&o->lock);
}
