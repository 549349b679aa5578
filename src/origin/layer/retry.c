/* SPDX-License-Identifier: MIT */
/*
 * The retry origin: attempts at another origin, until one answers, all tries
 * are spent or the time is. Requests come from any thread; attempts end on the
 * inner origin's threads; time-outs and pauses run on the timer thread.
 *
 * A request:
 *
 *   trying --answer--------------------------------------> answered
 *     |  ^-- time-out of the attempt: the next at once        ^
 *     |  ^-------------------------------.                    |
 *     '--error--> pausing --backoff over-'                    |
 *                    '--- tries or time spent, or abandoned --'
 *
 * An attempt has its own inner request and its own memory: one that timed out
 * stays until the inner origin answers it, and the answer is ignored. The bytes
 * of the current attempt are passed up as they come; the next attempt asks for
 * the missing ones. References to the request: one for each attempt and one for
 * its timer.
 */
#include "origin/layer/retry_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

#define ATTEMPT_DEFAULT_NS (30 * NS_PER_S)
#define TOTAL_DEFAULT_NS (120 * NS_PER_S)
#define ATTEMPTS_DEFAULT 6
#define PAUSE_DEFAULT_NS (100 * NS_PER_MS)

static struct retry *retry_of(struct origin *o)
{
	return (struct retry *)(void *)o;
}

/* -- Requests -------------------------------------------------------------- */

/* The copy of its path; a read has its file. */
static const char *retry_path_of(struct origin_request *outer)
{
	if (outer->op == ORIGIN_READ)
		return "";
	return outer->op == ORIGIN_STAT ? origin_stat_of(outer)->path
					: origin_list_of(outer)->path;
}

static struct retry_request *request_new(
	struct retry *o, struct origin_request *outer)
{
	const char *path = retry_path_of(outer);
	size_t size = strlen(path) + 1;
	struct retry_request *q = calloc(1, sizeof(*q) + size);

	if (!q)
		return NULL;
	timer_init(&q->timer, retry_on_timer);
	q->o = o;
	q->op = outer->op;
	q->outer = outer;
	q->refs = 1; /* the caller's */
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
		LOCK_SCOPE(&o->lock);

		if (q->op == ORIGIN_READ) {
			q->file = origin_read_of(outer)->file;
			q->file->refs++;
		}
		outer->priv = q;
		o->requests++;
		if (o->waiting++ == 0)
			o->waiting_ns = clock_now_ns();
		rc = retry_try(q);
		if (rc)
			(void)retry_take_outer(q);
		retry_put(q);
	}
	if (rc)
		late_answer(o->late, outer);
}

static void retry_run_note(struct pool_job *job)
{
	struct retry_request *q = CONTAINER_OF(job, struct retry_request, note);
	struct retry *o = q->o;

	origin_answer(q->dropped, -ECANCELED);
	pthread_mutex_lock(&o->lock);
	retry_put(q);
	pthread_mutex_unlock(&o->lock);
}

/* While bytes are being passed up, the end of that submits the note. */
static void retry_abandon(struct origin *base, struct origin_read *r)
{
	struct retry *o = retry_of(base);
	struct retry_request *q;
	struct attempt *a;

	if (late_has(o->late, &r->req))
		return;
	pthread_mutex_lock(&o->lock);
	q = r->req.priv;
	if (!q) {
		pthread_mutex_unlock(&o->lock);
		return;
	}
	a = q->last;
	q->refs++; /* the note's */
	pool_job_init(&q->note, retry_run_note);
	q->dropped = retry_take_outer(q);
	retry_disarm(q);
	if (!q->busy)
		late_run(o->late, &q->note);
	if (a)
		retry_attempt_abandon(a);
	pthread_mutex_unlock(&o->lock);
}

static struct origin_file *retry_file_new(struct origin *base, const char *path)
{
	size_t size = strlen(path) + 1;
	struct origin_file *f = calloc(1, sizeof(*f) + size);

	if (!f)
		return NULL;
	memcpy(f->path, path, size);
	f->o = retry_of(base);
	f->refs = 1;
	f->inner = origin_file_new(f->o->inner, path);
	if (!f->inner) {
		free(f);
		return NULL;
	}
	return f;
}

static void retry_file_free(struct origin *base, struct origin_file *f)
{
	struct retry *o = retry_of(base);
	LOCK_SCOPE(&o->lock);

	retry_file_put(f);
}

/* -- The origin ------------------------------------------------------------ */

static bool retry_free(struct origin *base)
{
	struct retry *o = retry_of(base);
	bool ended;

	pthread_mutex_lock(&o->lock);
	ended = cond_wait_zero(&o->quiet, &o->lock, &o->requests);
	pthread_mutex_unlock(&o->lock);
	/* Otherwise the inner origin still has attempts, which must stay. */
	if (!ended)
		return false;
	late_free(o->late);
	ended = origin_free(o->inner);
	pthread_cond_destroy(&o->quiet);
	pthread_mutex_destroy(&o->lock);
	free(o);
	return ended;
}

static const struct origin_ops retry_ops = {
	.file_new = retry_file_new,
	.file_free = retry_file_free,
	.start = retry_start,
	.abandon = retry_abandon,
	.free = retry_free,
};

int origin_retry_new(struct origin **out, struct origin *inner,
	const struct retry_config *config, struct timers *timers,
	struct counters *counters, struct error *err)
{
	struct retry *o = calloc(1, sizeof(*o));
	int rc = o ? late_new(&o->late) : -ENOMEM;

	if (rc) {
		free(o);
		return error_set(err, rc, "cannot start threads: %m");
	}
	origin_init(&o->base, &retry_ops, origin_traits(inner));
	o->inner = inner;
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
	lock_init(&o->lock, RANK_RETRY);
	cond_init(&o->quiet);
	*out = &o->base;
	return 0;
}
