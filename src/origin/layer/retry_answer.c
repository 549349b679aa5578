/* SPDX-License-Identifier: MIT */
/*
 * Callbacks of the inner origin to the attempts of the retry origin, on threads
 * of the inner origin. Answers to earlier attempts are ignored.
 */
#include "origin/layer/retry_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

/* The time limit of an attempt is extended in steps of at least this fraction:
 * one 16th. */
#define EXTENDED_SHARE 16u

static bool is_answer(int status)
{
	switch (status) {
	case -ESTALE:
	case -ENOENT:
	case -EACCES:
	case -EPERM:
	case -ENOTDIR:
	case -ELOOP:
	case -EMLINK:
	case -EFBIG:	       /* the index is too long */
	case -E2BIG:	       /* there are too many names */
	case -EPROTONOSUPPORT: /* the listing cannot be used */
	case -ENAMETOOLONG:
	case -EINVAL: /* a name leads out of the source */
		return true;
	}
	return status >= 0;
}

/* Does the status say that reading is not allowed? Another attempt would not
 * help, but an operator has to check the modes of the file, or the server. */
static bool is_refusal(enum origin_op op, int status)
{
	return op == ORIGIN_READ && status < 0 && status != -ESTALE &&
		status != -ENOENT;
}

/* Requires the lock. End an attempt. If it is the current one and its status is
 * an answer, returns the caller's request. Otherwise returns NULL, with the
 * lock released. */
static struct origin_request *attempt_ended(struct attempt *a, int status)
{
	struct retry_request *q = a->q;
	struct retry *o = q->o;

	ASSERT_HELD(&a->q->o->layer.lock);
	if (!is_answer(status)) {
		COUNT(o->counters, origin_errors);
		retry_failed(q, status);
		return NULL;
	}
	if (is_refusal(q->op, status))
		retry_refused(q, status);
	else
		retry_answered(o, q->op, q->started_ns);
	retry_disarm(q);
	return retry_take_outer(q);
}

void retry_done(struct origin_request *in, int status)
{
	struct attempt *a =
		OBJECT(attempt, CONTAINER_OF(in, struct attempt, in.req));
	struct retry_request *q = a->q;
	struct retry *o = q->o;
	struct origin_request *outer = NULL;

	/* Count before the answer, because the caller may read the counters
	 * right after it. */
	if (in->op == ORIGIN_READ && !is_answer(status))
		COUNT_ADD(
			o->counters, origin_retry_bytes, a->in.read.lost_bytes);
	pthread_mutex_lock(&o->layer.lock);
	if (q->last != a) {
		pthread_mutex_unlock(&o->layer.lock);
	} else {
		retry_time(q);
		if (status != -ETIMEDOUT)
			retry_heard(o);
		/* After the last byte, an error does not matter: all bytes are
		 * valid. */
		if (in->op == ORIGIN_READ &&
			q->got == origin_read_of(q->outer)->len)
			status = 0;
		outer = attempt_ended(a, status);
		if (outer)
			pthread_mutex_unlock(&o->layer.lock);
	}
	if (outer) {
		any_copy_found(outer, &a->in);
		origin_answer(outer, status);
	}
	pthread_mutex_lock(&o->layer.lock);
	retry_attempt_put(a);
	pthread_mutex_unlock(&o->layer.lock);
}

/* Begin to pass data of an attempt to the caller. Returns the caller's request;
 * NULL if the attempt is not the current one. Until call_end() the timer does
 * not end the attempt, and an abandoned request is not answered. */
static struct origin_request *call_begin(struct attempt *a)
{
	struct retry_request *q = a->q;
	struct origin_request *outer = NULL;

	pthread_mutex_lock(&q->o->layer.lock);
	if (q->last == a) {
		outer = q->outer;
		q->busy = true;
		retry_heard(q->o);
	}
	pthread_mutex_unlock(&q->o->layer.lock);
	return outer;
}

/* The inner origin has sent data: extend the attempt's time limit, but not
 * beyond that of the request. Data comes often, so the timer is only set if the
 * new time is much later. */
static void attempt_extend(struct retry_request *q)
{
	uint64_t time_ns = q->o->config.attempt_ns;
	uint64_t end_ns = clock_now_ns() + time_ns;

	if (end_ns < q->due_ns + time_ns / EXTENDED_SHARE)
		return;
	retry_arm(q, end_ns < q->until_ns ? end_ns : q->until_ns);
}

static void call_end(struct retry_request *q)
{
	ASSERT_HELD(&q->o->layer.lock);
	q->busy = false;
	if (q->dropped)
		late_run(q->o->layer.late, &q->note);
}

void retry_read_data(
	struct origin_read *in, uint64_t off, const void *bytes, size_t len)
{
	struct attempt *a =
		OBJECT(attempt, CONTAINER_OF(in, struct attempt, in.read));
	struct retry_request *q = a->q;
	struct retry *o = q->o;
	struct origin_request *outer = call_begin(a);

	if (!outer) { /* another attempt has replaced this one */
		COUNT_ADD(o->counters, origin_retry_bytes, len);
		return;
	}
	origin_read_of(outer)->data(origin_read_of(outer), off, bytes, len);
	pthread_mutex_lock(&o->layer.lock);
	q->got += len;
	q->failed = 0;
	if (q->outer && q->got < origin_read_of(q->outer)->len)
		attempt_extend(q);
	call_end(q);
	pthread_mutex_unlock(&o->layer.lock);
}

/* A listing that sends batches gets more time each time, however long it takes.
 */
void retry_list_batch(
	struct origin_list *in, const struct file_entry *entries, size_t n)
{
	struct attempt *a =
		OBJECT(attempt, CONTAINER_OF(in, struct attempt, in.list));
	struct retry_request *q = a->q;
	struct retry *o = q->o;
	struct origin_request *outer = call_begin(a);
	uint64_t end_ns = clock_now_ns() + o->config.attempt_ns;

	if (!outer)
		return;
	origin_list_of(outer)->batch(origin_list_of(outer), entries, n);
	pthread_mutex_lock(&o->layer.lock);
	if (q->until_ns < end_ns)
		q->until_ns = end_ns;
	attempt_extend(q);
	call_end(q);
	pthread_mutex_unlock(&o->layer.lock);
}

void retry_list_restart(struct origin_list *in)
{
	struct attempt *a =
		OBJECT(attempt, CONTAINER_OF(in, struct attempt, in.list));
	struct retry_request *q = a->q;
	struct origin_request *outer = call_begin(a);

	if (!outer)
		return;
	origin_list_of(outer)->restart(origin_list_of(outer));
	pthread_mutex_lock(&q->o->layer.lock);
	call_end(q);
	pthread_mutex_unlock(&q->o->layer.lock);
}
