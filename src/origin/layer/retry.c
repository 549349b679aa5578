/* SPDX-License-Identifier: MIT */
/*
 * The retry origin: repeats attempts at another origin until it answers, or
 * until the number of tries or the time is used up. Requests come from any
 * thread; attempts end on the inner origin's threads; time-outs and pauses run
 * on the timer thread.
 *
 * A request:
 *
 *   trying --answer--------------------------------------> answered
 *     |  ^-- time-out of the attempt: the next at once        ^
 *     |  ^-------------------------------.                    |
 *     '--error--> pausing --backoff over-'                    |
 *                    '--- tries or time spent, or abandoned --'
 *
 * Each attempt has its own inner request and its own memory. An attempt that
 * timed out stays until the inner origin answers it; that answer is ignored.
 * The bytes of the current attempt are passed to the caller when they arrive;
 * the next attempt requests only the missing bytes. References to the request:
 * 1 for each attempt and 1 for its timer.
 */
#include "origin/layer/retry_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

#define ATTEMPT_DEFAULT_NS (30 * NS_PER_S)
#define TOTAL_DEFAULT_NS (120 * NS_PER_S)
#define ATTEMPTS_DEFAULT 6
#define PAUSE_DEFAULT_NS (100 * NS_PER_MS)

static struct retry *retry_of(struct origin *o)
{
	return (struct retry *)(void *)layer_of(o);
}

/* -- Requests -------------------------------------------------------------- */

static struct retry_request *request_new(
	struct retry *o, struct origin_request *outer)
{
	/* A read names its file, not a path. */
	const char *path = outer->op == ORIGIN_READ ? "" : any_path(outer);
	size_t size = strlen(path) + 1;
	struct retry_request *q = calloc(1, sizeof(*q) + size);

	if (!q)
		return NULL;
	timer_init(&q->timer, retry_on_timer);
	q->o = o;
	q->op = outer->op;
	q->outer = outer;
	q->refs = 1; /* the reference of the code that starts the request */
	q->until_ns = clock_now_ns() + o->config.total_ns;
	memcpy(q->path, path, size);
	return q;
}

static void retry_start(struct origin *base, struct origin_request *outer)
{
	struct retry *o = retry_of(base);
	struct retry_request *q = request_new(o, outer);
	int rc = -ENOMEM;

	if (q) {
		LOCK_SCOPE(&o->layer.lock);

		if (q->op == ORIGIN_READ) {
			q->file = origin_read_of(outer)->file;
			q->file->refs++;
		}
		outer->priv = q;
		o->layer.requests++;
		if (o->waiting++ == 0)
			o->waiting_ns = clock_now_ns();
		rc = retry_try(q);
		if (rc)
			(void)retry_take_outer(q);
		retry_put(q);
	}
	if (rc)
		late_answer(o->layer.late, outer);
}

/* A read at once cannot fail: if it cannot be done, the caller starts a
 * request. */
static int retry_read_now(
	struct origin *base, const struct origin_read *r, void *bytes)
{
	struct retry *o = retry_of(base);
	uint64_t begun_ns = clock_now_ns();
	struct origin_read inner = *r;
	int rc;

	inner.file = r->file->inner;
	rc = origin_read_now(o->layer.inner, &inner, bytes);
	if (rc < 0)
		return rc;
	COUNT_TIME(o->counters, LATENCY_ORIGIN_READ, clock_now_ns() - begun_ns);
	LOCK_SCOPE(&o->layer.lock);
	retry_heard(o);
	retry_answered(o, ORIGIN_READ, begun_ns);
	return 0;
}

static void retry_run_note(struct thread_job *job)
{
	struct retry_request *q = CONTAINER_OF(job, struct retry_request, note);
	struct retry *o = q->o;

	origin_answer(q->dropped, -ECANCELED);
	pthread_mutex_lock(&o->layer.lock);
	retry_put(q);
	pthread_mutex_unlock(&o->layer.lock);
}

/* Give up on a read: the job `note` answers it on another thread. If the caller
 * is just getting bytes, call_end() submits the job. */
static void retry_abandon(struct origin *base, struct origin_read *r)
{
	struct retry *o = retry_of(base);
	struct retry_request *q;
	struct attempt *a;

	if (late_has(o->layer.late, &r->req))
		return;
	pthread_mutex_lock(&o->layer.lock);
	q = r->req.priv;
	if (!q) {
		pthread_mutex_unlock(&o->layer.lock);
		return;
	}
	a = q->last;
	q->refs++; /* the reference of the job `note` */
	thread_job_init(&q->note, retry_run_note);
	q->dropped = retry_take_outer(q);
	retry_disarm(q);
	if (!q->busy)
		late_run(o->layer.late, &q->note);
	if (a)
		retry_attempt_abandon(a);
	pthread_mutex_unlock(&o->layer.lock);
}

/* -- The origin ------------------------------------------------------------ */

static const struct origin_ops retry_ops = {
	.file_new = layer_file_new,
	.file_free = layer_file_free,
	.start = retry_start,
	.read_now = retry_read_now,
	.abandon = retry_abandon,
};

int origin_retry_new(struct origin **out, struct origin *inner,
	const struct retry_config *config, struct timers *timers,
	struct counters *counters, struct error *err)
{
	struct retry *o = calloc(1, sizeof(*o));
	int rc = o ? layer_init(&o->layer, &retry_ops, inner, RANK_RETRY)
		   : -ENOMEM;

	if (rc) {
		free(o);
		return error_set(err, rc, "cannot start threads: %m");
	}
	o->timers = timers;
	o->counters = counters;
	o->config = *config;
	if (!o->config.attempt_ns)
		o->config.attempt_ns = ATTEMPT_DEFAULT_NS;
	if (!o->config.total_ns)
		o->config.total_ns = TOTAL_DEFAULT_NS;
	if (!o->config.pause_ns)
		o->config.pause_ns = PAUSE_DEFAULT_NS;
	if (o->config.pause_ns > PAUSE_MAX_NS)
		o->config.pause_ns = PAUSE_MAX_NS;
	if (!o->config.attempts)
		o->config.attempts = ATTEMPTS_DEFAULT;
	*out = &o->layer.base;
	return 0;
}
