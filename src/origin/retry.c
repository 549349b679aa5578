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
 * is left to itself until the inner origin says something, which nobody hears.
 * The request is counted: one for each attempt and one for its timer.
 */
#include "origin/retry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"

#define ATTEMPT_DEFAULT_NS (30 * NS_PER_S)
#define TOTAL_DEFAULT_NS (120 * NS_PER_S)
#define ATTEMPTS_DEFAULT 6
#define PAUSE_DEFAULT_NS (100 * NS_PER_MS)

static struct retry *retry_of(struct origin *o)
{
	return (struct retry *)(void *)o;
}

/* -- Requests -------------------------------------------------------------- */

static struct request *request_new(
	struct retry *o, enum what what, void *outer, const char *path)
{
	size_t size = strlen(path) + 1;
	struct request *q = calloc(1, sizeof(*q) + size);

	if (!q)
		return NULL;
	q->timer.fire = retry_on_timer;
	q->o = o;
	q->what = what;
	q->outer = outer;
	q->refs = 1; /* the caller's */
	q->until_ns = clock_now_ns() + o->config.total_ns;
	memcpy(q->path, path, size);
	return q;
}

/* Lock held. */
static int request_start(struct request *q)
{
	struct retry *o = q->o;
	int rc;

	o->requests++;
	rc = retry_try(q);
	if (rc)
		(void)retry_take_outer(q);
	retry_put(q);
	return rc;
}

static void retry_read(struct origin *base, struct origin_read *r)
{
	struct retry *o = retry_of(base);
	struct request *q = request_new(o, READ, r, "");
	int rc = -ENOMEM;

	if (q) {
		LOCK_SCOPE(&o->lock);

		q->file = r->file;
		q->file->refs++;
		r->priv = q;
		rc = request_start(q);
	}
	if (rc)
		late_read(o->late, r);
}

static void retry_stat(struct origin *base, struct origin_stat *s)
{
	struct retry *o = retry_of(base);
	struct request *q = request_new(o, STAT, s, s->path);
	int rc = -ENOMEM;

	if (q) {
		LOCK_SCOPE(&o->lock);

		rc = request_start(q);
	}
	if (rc)
		late_stat(o->late, s);
}

static void retry_list(struct origin *base, struct origin_list *l)
{
	struct retry *o = retry_of(base);
	struct request *q = request_new(o, LIST, l, l->path);
	int rc = -ENOMEM;

	if (q) {
		LOCK_SCOPE(&o->lock);

		rc = request_start(q);
	}
	if (rc)
		late_list(o->late, l);
}

static void run_note(struct pool_job *job)
{
	struct request *q = CONTAINER_OF(job, struct request, note);
	struct retry *o = q->o;

	retry_tell(READ, q->dropped, -ECANCELED);
	pthread_mutex_lock(&o->lock);
	retry_put(q);
	pthread_mutex_unlock(&o->lock);
}

static void retry_abandon(struct origin *base, struct origin_read *r)
{
	struct retry *o = retry_of(base);
	struct request *q;
	struct attempt *a;

	if (late_has_read(o->late, r))
		return;
	pthread_mutex_lock(&o->lock);
	q = r->priv;
	if (!q) {
		pthread_mutex_unlock(&o->lock);
		return;
	}
	a = q->last;
	q->refs++; /* the note's */
	q->dropped = retry_take_outer(q);
	retry_disarm(q);
	if (a)
		origin_read_abandon(o->inner, &a->in.read);
	pthread_mutex_unlock(&o->lock);
	q->note.run = run_note;
	late_run(o->late, &q->note);
}

static struct origin_file *retry_file_new(struct origin *base, const char *path)
{
	struct origin_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
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

/* Whether all attempts have ended, within a second. */
static bool wait_quiet(struct retry *o)
{
	uint64_t until_ns = clock_now_ns() + NS_PER_S;
	LOCK_SCOPE(&o->lock);

	while (o->requests > 0)
		if (!cond_wait_until(&o->quiet, &o->lock, until_ns))
			break;
	return o->requests == 0;
}

static bool retry_free(struct origin *base)
{
	struct retry *o = retry_of(base);
	bool ended;

	/* Else the inner origin still has attempts, and they have to stay. */
	if (!wait_quiet(o))
		return false;
	late_free(o->late);
	ended = origin_free(o->inner);
	pthread_cond_destroy(&o->quiet);
	pthread_mutex_destroy(&o->lock);
	free(o);
	return ended;
}

static const struct origin_ops retry_ops = {
	.name = "retry",
	.file_new = retry_file_new,
	.file_free = retry_file_free,
	.read = retry_read,
	.stat = retry_stat,
	.list = retry_list,
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
	o->base.ops = &retry_ops;
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
	pthread_mutex_init(&o->lock, NULL);
	cond_init(&o->quiet);
	*out = &o->base;
	return 0;
}
