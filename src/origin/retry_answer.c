/* SPDX-License-Identifier: MIT */
/*
 * What the inner origin says to the attempts of the retry origin. Only the
 * attempt that counts is heard. Threads of the inner origin.
 */
#include "origin/retry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

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

/* To ask again is of no use, but somebody has to look at the file's modes. */
static bool is_refusal(int status)
{
	return status == -EACCES || status == -EPERM;
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
		if (q->what == READ && is_refusal(status))
			COUNT(o->counters, origin_errors);
		retry_disarm(q);
		outer = retry_take_outer(q);
		pthread_mutex_unlock(&o->lock);
	} else if (q->last == a) {
		COUNT(o->counters, origin_errors);
		retry_failed(q, status);
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
	retry_put(q);
	pthread_mutex_unlock(&o->lock);
}

void retry_read_done(struct origin_read *in, int status, const void *data)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.read);
	struct counters *counters = a->q->o->counters;
	struct origin_read *r;

	/* Before anybody who asked can look. */
	if (!is_answer(status))
		COUNT_ADD(counters, origin_retry_bytes, in->lost_bytes);
	r = attempt_ended(a, status);
	if (r)
		r->done(r, status, data);
	else if (status > 0) /* too late, but the origin did send it */
		COUNT_ADD(counters, origin_retry_bytes, status);
	attempt_free(a);
}

void retry_stat_done(struct origin_stat *in, int status,
	const struct file_attr *attr, const char *target)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.stat);
	struct origin_stat *s = attempt_ended(a, status);

	if (s)
		s->done(s, status, attr, target);
	attempt_free(a);
}

/* Only the attempt that counts is heard; it is alive, so it gets more time. */
void retry_list_batch(
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
	(void)retry_arm(q, end_ns);
	pthread_mutex_unlock(&o->lock);
}

void retry_list_restart(struct origin_list *in)
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

void retry_list_done(struct origin_list *in, int status)
{
	struct attempt *a = CONTAINER_OF(in, struct attempt, in.list);
	struct origin_list *l = attempt_ended(a, status);

	if (l)
		l->done(l, status);
	attempt_free(a);
}
