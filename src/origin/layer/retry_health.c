/* SPDX-License-Identifier: MIT */
/*
 * Decides from the results of the retry origin whether the source answers. The
 * source counts as failing from the first request that was given up, or from
 * the third read in a row that was refused, until it answers again. A single
 * refused read is not an outage, because the modes of that file may differ from
 * those of the rest. The caller holds the origin's lock, except for
 * origin_retry_health().
 */
#include "origin/layer/retry_impl.h"

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

/* This many refused reads in a row count as an outage. */
#define REFUSED_OUTAGE 3u

/* Returns the path of a request, for messages. */
static const char *retry_path(const struct retry_request *q)
{
	return q->op == ORIGIN_READ ? q->file->path : q->path;
}

void retry_heard(struct retry *o)
{
	ASSERT_HELD(&o->layer.lock);
	o->heard_ns = clock_now_ns();
}

/* Note that the source has answered. If the request began before the last
 * failure, its answer does not show that the source works now. While reads
 * fail, an answer to a look-up or a listing does not show it either. */
void retry_answered(struct retry *o, enum origin_op op, uint64_t begun_ns)
{
	struct event e = {
		.kind = EVENT_ORIGIN_BACK, .n = o->given_up, .turn = true};

	ASSERT_HELD(&o->layer.lock);
	if (begun_ns < o->gave_up_ns || (o->lost_reads && op != ORIGIN_READ))
		return;
	o->refused = 0;
	o->lost_reads = false;
	if (o->answered_ns < begun_ns)
		o->answered_ns = begun_ns;
	if (o->given_up == 0)
		return;
	o->given_up = 0;
	event_report(o->config.events, &e);
}

static void retry_note_failure(const struct retry_request *q)
{
	struct retry *o = q->o;

	o->lost_reads |= q->op == ORIGIN_READ;
	o->gave_up_ns = clock_now_ns();
}

void retry_refused(const struct retry_request *q, int status)
{
	struct retry *o = q->o;
	struct event e = {.kind = EVENT_ORIGIN_REFUSES,
		.path = retry_path(q),
		.status = status,
		.turn = o->given_up == 0};

	ASSERT_HELD(&o->layer.lock);
	COUNT(o->counters, origin_errors);
	COUNT(o->counters, origin_failures);
	retry_note_failure(q);
	if (o->given_up > 0)
		o->given_up++;
	if (++o->refused != REFUSED_OUTAGE)
		return;
	if (o->given_up == 0)
		o->given_up = o->refused;
	event_report(o->config.events, &e);
}

void retry_report_again(const struct retry_request *q, int status)
{
	struct event e = {.kind = EVENT_ORIGIN_RETRY,
		.path = retry_path(q),
		.status = status};

	ASSERT_HELD(&q->o->layer.lock);
	event_report(q->o->config.events, &e);
}

void retry_given_up(const struct retry_request *q, int cause)
{
	struct retry *o = q->o;
	struct event e = {.kind = EVENT_ORIGIN_FAILED,
		.path = retry_path(q),
		.status = cause,
		.n = q->failed,
		.turn = o->given_up == 0};

	ASSERT_HELD(&o->layer.lock);
	COUNT(o->counters, origin_failures);
	event_report(o->config.events, &e);
	o->given_up++;
	retry_note_failure(q);
}

void origin_retry_health(struct origin *base, struct origin_health *health)
{
	struct retry *o = (struct retry *)(void *)layer_of(base);
	uint64_t now_ns = clock_now_ns(), since_ns;

	LOCK_SCOPE(&o->layer.lock);
	since_ns = o->heard_ns > o->waiting_ns ? o->heard_ns : o->waiting_ns;
	*health = (struct origin_health){
		.answered_ns = o->answered_ns,
		.waiting = o->waiting,
		.silent_ns = o->waiting > 0 && now_ns > since_ns
			? now_ns - since_ns
			: 0,
	};
}
