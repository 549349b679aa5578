/* SPDX-License-Identifier: MIT */
/* The attempts of the retry origin: starts them, gives them up, and repeats
 * them after a pause. Called by callers, the inner origin's threads and the
 * timer thread. */
#include "origin/layer/retry_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

/* If an attempt times out during a callback, the timer fires again after this
 * time. */
#define BUSY_NS (5 * NS_PER_MS)

/* -- Life ------------------------------------------------------------------ */

void retry_put(struct retry_request *q)
{
	struct retry *o = q->o;

	ASSERT_HELD(&q->o->layer.lock);
	if (--q->refs > 0)
		return;
	layer_file_put(&o->layer, q->file);
	free(q);
	layer_request_ended(&o->layer);
}

/* Requires the lock. Cancel the timer. If it is firing just now, it has no
 * effect. */
void retry_disarm(struct retry_request *q)
{
	ASSERT_HELD(&q->o->layer.lock);
	if (timer_cancel(q->o->timers, &q->timer))
		retry_put(q);
}

void retry_arm(struct retry_request *q, uint64_t at_ns)
{
	ASSERT_HELD(&q->o->layer.lock);
	/* If the timer was set, the reference of that setting belongs to the
	 * new one. */
	if (!timer_cancel(q->o->timers, &q->timer))
		q->refs++;
	timer_set(q->o->timers, &q->timer, at_ns);
	q->due_ns = at_ns;
}

/* -- Answers --------------------------------------------------------------- */

/* Requires the lock. Take the caller's request from q, in order to answer it
 * without the lock. Returns NULL if it has been answered. */
struct origin_request *retry_take_outer(struct retry_request *q)
{
	struct origin_request *outer = q->outer;

	ASSERT_HELD(&q->o->layer.lock);
	q->outer = NULL;
	q->last = NULL;
	if (outer) {
		outer->priv = NULL;
		q->o->waiting--;
	}
	return outer;
}

/* -- Attempts -------------------------------------------------------------- */

/* Requires the lock, and that `outer` is set. Bytes that the caller has got are
 * not requested again. */
static struct attempt *attempt_new(struct retry_request *q)
{
	struct attempt *a = calloc(1, sizeof(*a));

	ASSERT_HELD(&q->o->layer.lock);
	if (!a)
		return NULL;
	MAGIC_BEGIN(a, attempt);
	a->q = q;
	a->refs = 1;
	any_copy(&a->in, q->outer);
	a->in.req.done = retry_done;
	if (q->op == ORIGIN_READ) {
		a->in.read.file = q->file->inner;
		a->in.read.off += q->got;
		a->in.read.len -= q->got;
		a->in.read.data = retry_read_data;
	} else if (q->op == ORIGIN_STAT) {
		a->in.stat.path = q->path;
	} else {
		a->in.list.path = q->path;
		a->in.list.batch = retry_list_batch;
		a->in.list.restart = retry_list_restart;
	}
	return a;
}

void retry_attempt_put(struct attempt *a)
{
	struct retry_request *q = a->q;

	ASSERT_HELD(&q->o->layer.lock);
	if (--a->refs > 0)
		return;
	MAGIC_END(a);
	free(a);
	retry_put(q);
}

void retry_attempt_abandon(struct attempt *a)
{
	struct retry *o = a->q->o;

	ASSERT_HELD(&o->layer.lock);
	a->unwanted = true;
	if (!a->started || a->q->op != ORIGIN_READ)
		return;
	a->refs++;
	pthread_mutex_unlock(&o->layer.lock);
	origin_read_abandon(o->layer.inner, &a->in.read);
	pthread_mutex_lock(&o->layer.lock);
	retry_attempt_put(a);
}

static void attempt_start(struct attempt *a)
{
	struct retry *o = a->q->o;

	ASSERT_HELD(&o->layer.lock);
	a->refs++;
	pthread_mutex_unlock(&o->layer.lock);
	origin_start(o->layer.inner, &a->in.req);
	pthread_mutex_lock(&o->layer.lock);
	a->started = true;
	if (a->unwanted)
		retry_attempt_abandon(a);
	retry_attempt_put(a);
}

int retry_try(struct retry_request *q)
{
	struct retry *o = q->o;
	uint64_t end_ns = clock_now_ns() + o->config.attempt_ns;
	struct attempt *a = attempt_new(q);

	ASSERT_HELD(&q->o->layer.lock);
	if (!a)
		return -ENOMEM;
	retry_arm(q, end_ns < q->until_ns ? end_ns : q->until_ns);
	q->last = a;
	q->started_ns = clock_now_ns();
	q->refs++;
	if (q->op == ORIGIN_STAT)
		COUNT(o->counters, origin_stats);
	if (q->op == ORIGIN_LIST)
		COUNT(o->counters, origin_lists);
	attempt_start(a);
	return 0;
}

/* Returns the next pause. It doubles each time, and half of it is random, so
 * that requests spread in time. */
static uint64_t pause_ns(struct retry_request *q)
{
	uint64_t turn =
		atomic_fetch_add_explicit(&q->o->turn, 1, memory_order_relaxed);
	uint64_t pause = q->o->config.pause_ns
		<< (q->failed < 9 ? q->failed - 1 : 8);

	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	return pause / 2 + hash64(&turn, sizeof(turn), 0) % (pause / 2 + 1);
}

/* Requires the lock. End the request with `status`, release the lock, and
 * answer. `cause` is the status of the last attempt. */
static void give_up(struct retry_request *q, int status, int cause)
{
	struct retry *o = q->o;
	struct origin_request *outer = retry_take_outer(q);

	ASSERT_HELD(&q->o->layer.lock);
	retry_given_up(q, cause);
	pthread_mutex_unlock(&o->layer.lock);
	if (outer)
		origin_answer(outer, status);
}

/* Requires the lock. Have the caller of a listing drop all batches so far. The
 * lock is released for the callback. */
static void forget_batches(struct retry_request *q)
{
	struct origin_list *l;

	ASSERT_HELD(&q->o->layer.lock);
	if (q->op != ORIGIN_LIST)
		return;
	l = origin_list_of(q->outer);
	/* no other thread uses l now, because the next attempt has not begun */
	pthread_mutex_unlock(&q->o->layer.lock);
	l->restart(l);
	pthread_mutex_lock(&q->o->layer.lock);
}

/* Requires the lock, and releases it. Handle an attempt that failed with
 * `status`. The caller has a reference. */
void retry_failed(struct retry_request *q, int status)
{
	struct retry *o = q->o;
	uint64_t at_ns;

	ASSERT_HELD(&q->o->layer.lock);
	retry_disarm(q);
	q->last = NULL;
	if (++q->failed >= o->config.attempts) {
		give_up(q, -EIO, status);
		return;
	}
	at_ns = clock_now_ns() + pause_ns(q);
	if (at_ns >= q->until_ns) {
		give_up(q, -EIO, status);
		return;
	}
	retry_arm(q, at_ns);
	retry_report_again(q, status);
	pthread_mutex_unlock(&o->layer.lock);
}

void retry_time(const struct retry_request *q)
{
	uint64_t ns = clock_now_ns() - q->started_ns;
	const struct counters *c = q->o->counters;

	ASSERT_HELD(&q->o->layer.lock);
	switch (q->op) {
	case ORIGIN_READ:
		COUNT_TIME(c, LATENCY_ORIGIN_READ, ns);
		break;
	case ORIGIN_STAT:
		COUNT_TIME(c, LATENCY_ORIGIN_STAT, ns);
		break;
	case ORIGIN_LIST:
		COUNT_TIME(c, LATENCY_ORIGIN_LIST, ns);
		break;
	}
}

/* Requires the lock, and releases it. Handle an attempt that did not answer in
 * time. */
static void attempt_late(struct retry_request *q)
{
	struct retry *o = q->o;
	struct attempt *a = q->last;

	ASSERT_HELD(&q->o->layer.lock);
	COUNT(o->counters, origin_timeouts);
	retry_time(q);
	q->last = NULL;
	retry_attempt_abandon(a);
	if (!q->outer) { /* the caller has abandoned the request */
		pthread_mutex_unlock(&o->layer.lock);
		return;
	}
	if (++q->failed >= o->config.attempts ||
		clock_now_ns() >= q->until_ns) {
		give_up(q, -ETIMEDOUT, -ETIMEDOUT);
		return;
	}
	retry_report_again(q, -ETIMEDOUT);
	forget_batches(q);
	COUNT(o->counters, origin_retries);
	if (retry_try(q)) {
		give_up(q, -ENOMEM, -ENOMEM);
		return;
	}
	pthread_mutex_unlock(&o->layer.lock);
}

void retry_on_timer(struct timer *t)
{
	struct retry_request *q = CONTAINER_OF(t, struct retry_request, timer);
	struct retry *o = q->o;

	pthread_mutex_lock(&o->layer.lock);
	if (!q->outer || clock_now_ns() < q->due_ns) {
		/* The timer fired while another thread cancelled or moved it.
		 */
		pthread_mutex_unlock(&o->layer.lock);
	} else if (q->busy || (q->last && !q->last->started)) {
		retry_arm(q, clock_now_ns() + BUSY_NS);
		pthread_mutex_unlock(&o->layer.lock);
	} else if (q->last) {
		attempt_late(q);
	} else {
		forget_batches(q);
		COUNT(o->counters, origin_retries);
		if (retry_try(q))
			give_up(q, -ENOMEM, -ENOMEM);
		else
			pthread_mutex_unlock(&o->layer.lock);
	}
	pthread_mutex_lock(&o->layer.lock);
	retry_put(q);
	pthread_mutex_unlock(&o->layer.lock);
}
