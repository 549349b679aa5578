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
#include "origin/origin.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "origin/late.h"

#define ATTEMPT_DEFAULT_NS (30 * NS_PER_S)
#define TOTAL_DEFAULT_NS (120 * NS_PER_S)
#define ATTEMPTS_DEFAULT 6
#define PAUSE_DEFAULT_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_S)
/* How soon to look again at an attempt that was due in mid-callback. */
#define BUSY_NS (5 * NS_PER_MS)

struct retry {
	struct origin base;
	/* All set once. */
	struct origin *inner;
	struct timers *timers;
	struct counters *counters;
	struct late *late;
	struct retry_config config;
	_Atomic uint64_t turn; /* relaxed: of the jitter */
	pthread_mutex_t lock;  /* rank: above the timers' and the inner's */
	pthread_cond_t quiet;  /* `requests` has fallen to 0 */
	unsigned requests;     /* lock: that exist */
};

struct origin_file {
	struct retry *o;
	unsigned refs; /* origin lock: the handle, each request of it */
	struct origin_file *inner;
};

enum what { READ, STAT, LIST };

/* A request in hand. */
struct request {
	struct timer timer; /* the attempt's end, or the pause's */
	struct retry *o;
	enum what what;
	void *outer;	      /* lock: what we were asked; NULL: answered */
	void *dropped;	      /* set once, by abandon, for the note */
	struct attempt *last; /* lock: the one that counts, or NULL */
	unsigned refs;	      /* lock: attempts, timer, note */
	unsigned failed;      /* lock: attempts that failed or timed out */
	uint64_t due_ns;      /* lock: what the timer is set for */
	uint64_t until_ns;    /* lock: end of all tries */
	bool busy;	      /* lock: a batch is being handed up */
	struct origin_file *file;
	struct pool_job note;
	char path[]; /* of a stat or a list */
};

/* One try; freed when the inner origin has answered it. */
struct attempt {
	struct request *q; /* holds a reference */
	union {
		struct origin_read read;
		struct origin_stat stat;
		struct origin_list list;
	} in;
};

static struct retry *retry_of(struct origin *o)
{
	return (struct retry *)(void *)o;
}

/* -- Life ------------------------------------------------------------------ */

/* Lock held. */
static void file_put(struct origin_file *f)
{
	if (!f || --f->refs > 0)
		return;
	origin_file_free(f->o->inner, f->inner);
	free(f);
}

/* Lock held. */
static void request_put(struct request *q)
{
	struct retry *o = q->o;

	if (--q->refs > 0)
		return;
	file_put(q->file);
	free(q);
	if (--o->requests == 0)
		pthread_cond_broadcast(&o->quiet);
}

/* Lock held: the timer no longer counts, unless it is firing just now. */
static void disarm(struct request *q)
{
	if (timer_cancel(q->o->timers, &q->timer))
		request_put(q);
}

/* Lock held. True if it was armed; else the caller ends the request. */
static bool arm(struct request *q, uint64_t at_ns)
{
	disarm(q);
	if (timer_set(q->o->timers, &q->timer, at_ns))
		return false;
	q->due_ns = at_ns;
	q->refs++;
	return true;
}

/* -- Answers --------------------------------------------------------------- */

static bool is_answer(int status)
{
	switch (status) {
	case -ESTALE:
	case -ENOENT:
	case -EACCES:
	case -EPERM:
	case -ENOTDIR:
	case -ELOOP:
	case -ENAMETOOLONG:
	case -EINVAL: /* a name that escapes */
		return true;
	}
	return status >= 0;
}

/* No lock held: errors of all kinds. */
static void tell(enum what what, void *outer, int status)
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
static void *take_outer(struct request *q)
{
	void *outer = q->outer;

	q->outer = NULL;
	q->last = NULL;
	if (outer && q->what == READ)
		((struct origin_read *)outer)->priv = NULL;
	return outer;
}

/* -- Attempts -------------------------------------------------------------- */

static void read_done(struct origin_read *r, int status, const void *data);
static void stat_done(struct origin_stat *s, int status,
	const struct file_attr *attr, const char *target);
static void list_batch(
	struct origin_list *l, const struct file_entry *entries, size_t n);
static void list_restart(struct origin_list *l);
static void list_done(struct origin_list *l, int status);

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
		a->in.read.done = read_done;
		a->in.read.priv = NULL;
	} else if (q->what == STAT) {
		a->in.stat.path = q->path;
		a->in.stat.done = stat_done;
	} else {
		a->in.list.path = q->path;
		a->in.list.batch = list_batch;
		a->in.list.restart = list_restart;
		a->in.list.done = list_done;
	}
	return a;
}

/*
 * Lock held (its rank is above the inner origin's, whose start functions never
 * call back). -ENOMEM: nothing was begun.
 */
static int try_now(struct request *q)
{
	struct retry *o = q->o;
	uint64_t end_ns = clock_now_ns() + o->config.attempt_ns;
	struct attempt *a = attempt_new(q);

	if (!a)
		return -ENOMEM;
	if (!arm(q, end_ns < q->until_ns ? end_ns : q->until_ns)) {
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
	void *outer = take_outer(q);

	COUNT(o->counters, origin_failures);
	pthread_mutex_unlock(&o->lock);
	if (outer)
		tell(q->what, outer, status);
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
static void attempt_failed(struct request *q, int status)
{
	struct retry *o = q->o;
	uint64_t at_ns;

	disarm(q);
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
	if (!arm(q, at_ns)) {
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
	if (try_now(q)) {
		give_up(q, -ENOMEM);
		return;
	}
	pthread_mutex_unlock(&o->lock);
}

static void on_timer(struct timer *t)
{
	struct request *q = CONTAINER_OF(t, struct request, timer);
	struct retry *o = q->o;

	pthread_mutex_lock(&o->lock);
	if (!q->outer || clock_now_ns() < q->due_ns) {
		/* Fired when it was being cancelled, or moved. */
		pthread_mutex_unlock(&o->lock);
	} else if (q->busy) {
		if (!arm(q, clock_now_ns() + BUSY_NS))
			q->due_ns = 0; /* the batch's end arms it */
		pthread_mutex_unlock(&o->lock);
	} else if (q->last) {
		attempt_late(q);
	} else {
		forget_batches(q);
		COUNT(o->counters, origin_retries);
		if (try_now(q))
			give_up(q, -ENOMEM);
		else
			pthread_mutex_unlock(&o->lock);
	}
	pthread_mutex_lock(&o->lock);
	request_put(q);
	pthread_mutex_unlock(&o->lock);
}

/*
 * The end of an attempt: what was asked, if this is the answer to it; else
 * NULL, and everything is done but freeing the attempt.
 */
static void *attempt_ended(struct attempt *a, int status)
{
	struct request *q = a->q;
	struct retry *o = q->o;
	void *outer = NULL;

	pthread_mutex_lock(&o->lock);
	if (q->last == a && is_answer(status)) {
		disarm(q);
		outer = take_outer(q);
		pthread_mutex_unlock(&o->lock);
	} else if (q->last == a) {
		COUNT(o->counters, origin_errors);
		attempt_failed(q, status);
	} else {
		pthread_mutex_unlock(&o->lock);
	}
	return outer;
}

static void attempt_free(struct attempt *a)
{
	struct request *q = a->q;
	struct retry *o = q->o;

	pthread_mutex_lock(&o->lock);
	free(a);
	request_put(q);
	pthread_mutex_unlock(&o->lock);
}

static void read_done(struct origin_read *in, int status, const void *data)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.read);
	struct origin_read *r = attempt_ended(a, status);

	if (r)
		r->done(r, status, data);
	else if (status > 0) /* too late, but the origin did send it */
		COUNT_ADD(a->q->o->counters, origin_retry_bytes, status);
	attempt_free(a);
}

static void stat_done(struct origin_stat *in, int status,
	const struct file_attr *attr, const char *target)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.stat);
	struct origin_stat *s = attempt_ended(a, status);

	if (s)
		s->done(s, status, attr, target);
	attempt_free(a);
}

/* Only the attempt that counts is heard; it is alive, so it gets more time. */
static void list_batch(
	struct origin_list *in, const struct file_entry *entries, size_t n)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.list);
	struct request *q = a->q;
	struct retry *o = q->o;
	struct origin_list *l = NULL;
	uint64_t end_ns = clock_now_ns() + o->config.attempt_ns;

	pthread_mutex_lock(&o->lock);
	if (q->last == a) {
		l = q->outer;
		q->busy = true;
		if (q->until_ns < end_ns)
			q->until_ns = end_ns;
	}
	pthread_mutex_unlock(&o->lock);
	if (!l)
		return;
	l->batch(l, entries, n);
	pthread_mutex_lock(&o->lock);
	q->busy = false;
	/* Without memory the attempt has no end of its own; it still ends. */
	(void)arm(q, end_ns);
	pthread_mutex_unlock(&o->lock);
}

static void list_restart(struct origin_list *in)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.list);
	struct request *q = a->q;
	struct origin_list *l = NULL;

	pthread_mutex_lock(&q->o->lock);
	if (q->last == a) {
		l = q->outer;
		q->busy = true;
	}
	pthread_mutex_unlock(&q->o->lock);
	if (!l)
		return;
	l->restart(l);
	pthread_mutex_lock(&q->o->lock);
	q->busy = false;
	pthread_mutex_unlock(&q->o->lock);
}

static void list_done(struct origin_list *in, int status)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.list);
	struct origin_list *l = attempt_ended(a, status);

	if (l)
		l->done(l, status);
	attempt_free(a);
}

/* -- Requests -------------------------------------------------------------- */

static struct request *request_new(
	struct retry *o, enum what what, void *outer, const char *path)
{
	size_t size = strlen(path) + 1;
	struct request *q = calloc(1, sizeof(*q) + size);

	if (!q)
		return NULL;
	q->timer.fire = on_timer;
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
	rc = try_now(q);
	if (rc)
		(void)take_outer(q);
	request_put(q);
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

	tell(READ, q->dropped, -ECANCELED);
	pthread_mutex_lock(&o->lock);
	request_put(q);
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
	q->dropped = take_outer(q);
	disarm(q);
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

	file_put(f);
}

/* -- The origin ------------------------------------------------------------ */

/* Whether all attempts have ended, within a second. */
static bool wait_quiet(struct retry *o)
{
	uint64_t until_ns = clock_now_ns() + NS_PER_S;
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	LOCK_SCOPE(&o->lock);

	while (o->requests > 0)
		if (pthread_cond_timedwait(&o->quiet, &o->lock, &ts))
			break;
	return o->requests == 0;
}

static void retry_free(struct origin *base)
{
	struct retry *o = retry_of(base);

	/* Else the inner origin still has attempts, and they have to stay. */
	if (!wait_quiet(o))
		return;
	late_free(o->late);
	origin_free(o->inner);
	pthread_cond_destroy(&o->quiet);
	pthread_mutex_destroy(&o->lock);
	free(o);
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
	pthread_condattr_t attr;
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
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->quiet, &attr);
	pthread_condattr_destroy(&attr);
	*out = &o->base;
	return 0;
}
