/* SPDX-License-Identifier: MIT */
/*
 * The fault origin: delays, errors, stalls and a limited rate in front of
 * another origin, for tests and drills. Requests come from any thread, and no
 * thread waits: a delayed request has a timer, a stalled one is in a list. The
 * verdict on a request is drawn from the seed and the number of the request.
 *
 *   drawn --at once, or delayed--> passed on ----> answered by the inner one
 *     |  ^      |                                       ^
 *     |  |      '-- error, short read, abandoned -------'
 *     '-stalled-- abandoned ----------------------------'
 *
 * The inner origin is never called with the lock held. So a request must exist
 * until it is answered and no call of the inner origin uses it any more.
 */
#include "origin/origin.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "common/base/words.h"
#include "origin/layer/layer_impl.h"

/* The faults to inject. origin.h documents their words. */
struct fault_spec {
	uint64_t delay_ns, rate_bytes, piece_bytes, seed, meta;
	double error, cut, stall, crash; /* fractions of the requests, 0 to 1 */
	char match[WORD_TEXT_BYTES];	 /* "" matches all paths */
};

static const struct word_def fault_words[] = {
	{"delay", WORD_TIME, offsetof(struct fault_spec, delay_ns)},
	{"error", WORD_SHARE, offsetof(struct fault_spec, error)},
	{"short", WORD_SHARE, offsetof(struct fault_spec, cut)},
	{"pieces", WORD_SIZE, offsetof(struct fault_spec, piece_bytes)},
	{"crash", WORD_SHARE, offsetof(struct fault_spec, crash)},
	{"stall", WORD_SHARE, offsetof(struct fault_spec, stall)},
	{"rate", WORD_SIZE, offsetof(struct fault_spec, rate_bytes)},
	{"meta", WORD_NUMBER, offsetof(struct fault_spec, meta)},
	{"match", WORD_TEXT, offsetof(struct fault_spec, match)},
	{"seed", WORD_NUMBER, offsetof(struct fault_spec, seed)},
	{NULL, WORD_TEXT, 0},
};

struct fault {
	struct layer layer;    /* "the lock" below is the lock of the layer */
	struct timers *timers; /* set once */
	/* guarded by the lock, as all members below are */
	struct fault_spec spec;
	uint64_t drawn;	  /* number of requests since the spec was set */
	uint64_t free_ns; /* time at which the rate allows the next byte */
	struct list stalled;
};

enum verdict { PASS, FAIL, CUT, STALL };

/* A request that this origin delays, or that the inner origin has. */
struct fault_request {
	struct timer timer; /* set while WAITING */
	struct fault *o;
	/* guarded by the lock */
	enum { WAITING, STALLED, PASSING, PASSED } state;
	/* guarded by the lock: 1 until the answer, and 1 for each call of the
	 * inner origin */
	unsigned refs;
	enum verdict verdict;	      /* guarded by the lock */
	bool abandoned;		      /* guarded by the lock */
	struct origin_request *outer; /* the caller's request; set once */
	const char *path; /* path of the caller's request; set once */
	/* in fault.stalled while STALLED; guarded by the lock */
	struct list node;
	struct thread_job note;
	/* Maximum length of a piece; 0: no limit. Guarded by the lock until
	 * PASSING */
	size_t piece_bytes;
	union origin_any in;
};

static struct fault *fault_of(struct origin *o)
{
	return (struct fault *)(void *)layer_of(o);
}

static int fault_spec_parse(
	struct fault_spec *s, const char *text, struct error *err)
{
	int rc;

	*s = (struct fault_spec){0};
	rc = words_parse(s, fault_words, text, err);
	return rc ? error_wrap(err, rc, "fault '%s'", text) : 0;
}

/* -- Answers --------------------------------------------------------------- */

/* Requires the lock. After this, fault_abandon() does not find the request any
 * more. */
static void fault_let_go(struct fault_request *q)
{
	ASSERT_HELD(&q->o->layer.lock);
	q->outer->priv = NULL;
}

static void fault_put(struct fault_request *q)
{
	struct fault *o = q->o;

	ASSERT_HELD(&o->layer.lock);
	if (--q->refs > 0)
		return;
	free(q);
	layer_request_ended(&o->layer);
}

/* Answer the request, and drop a reference, which may free q. Call this without
 * the lock. */
static void fault_tell(struct fault_request *q, int status)
{
	struct fault *o = q->o;

	origin_answer(q->outer, status);
	pthread_mutex_lock(&o->layer.lock);
	fault_put(q);
	pthread_mutex_unlock(&o->layer.lock);
}

static void run_note(struct thread_job *job)
{
	fault_tell(CONTAINER_OF(job, struct fault_request, note), -ECANCELED);
}

/* Requires the lock. Have another thread answer the request with -ECANCELED. */
static void cancel_later(struct fault_request *q)
{
	ASSERT_HELD(&q->o->layer.lock);
	fault_let_go(q);
	thread_job_init(&q->note, run_note);
	late_run(q->o->layer.late, &q->note);
}

static void read_data(
	struct origin_read *in, uint64_t off, const void *bytes, size_t len)
{
	struct fault_request *q =
		CONTAINER_OF(in, struct fault_request, in.read);
	struct origin_read *r = origin_read_of(q->outer);
	size_t piece = q->piece_bytes ? q->piece_bytes : len;

	for (size_t at = 0; at < len; at += piece)
		r->data(r, off + at, (const char *)bytes + at,
			len - at < piece ? len - at : piece);
}

static void list_batch(
	struct origin_list *in, const struct file_entry *entries, size_t n)
{
	struct fault_request *q =
		CONTAINER_OF(in, struct fault_request, in.list);
	struct origin_list *l = origin_list_of(q->outer);

	l->batch(l, entries, n);
}

static void list_restart(struct origin_list *in)
{
	struct fault_request *q =
		CONTAINER_OF(in, struct fault_request, in.list);
	struct origin_list *l = origin_list_of(q->outer);

	l->restart(l);
}

static void inner_done(struct origin_request *in, int status)
{
	struct fault_request *q =
		CONTAINER_OF(in, struct fault_request, in.req);

	pthread_mutex_lock(&q->o->layer.lock);
	fault_let_go(q);
	pthread_mutex_unlock(&q->o->layer.lock);
	if (in->op == ORIGIN_READ)
		origin_read_of(q->outer)->lost_bytes = q->in.read.lost_bytes;
	any_copy_found(q->outer, &q->in);
	fault_tell(q, q->verdict == CUT && status == 0 ? -EIO : status);
}

/* -- What happens to a request --------------------------------------------- */

/* Requires the lock, but releases it during the call of the inner origin. */
static void abandon_inner(struct fault_request *q)
{
	struct fault *o = q->o;

	ASSERT_HELD(&o->layer.lock);
	q->refs++;
	pthread_mutex_unlock(&o->layer.lock);
	origin_read_abandon(o->layer.inner, &q->in.read);
	pthread_mutex_lock(&o->layer.lock);
	fault_put(q);
}

/* Copy the request for the inner origin. */
static void make_inner(struct fault_request *q)
{
	ASSERT_HELD(&q->o->layer.lock);
	any_copy(&q->in, q->outer);
	q->in.req.done = inner_done;
	if (q->outer->op == ORIGIN_READ) {
		q->in.read.file = q->in.read.file->inner;
		q->in.read.data = read_data;
		if (q->verdict == CUT)
			q->in.read.len /= 2;
	} else if (q->outer->op == ORIGIN_LIST) {
		q->in.list.batch = list_batch;
		q->in.list.restart = list_restart;
	}
}

/* Pass q to the inner origin, which may answer it and so free q. Requires the
 * lock, but releases it during the call of the inner origin. An abandon during
 * this call waits until the call has returned. */
static void fault_pass(struct fault_request *q)
{
	struct fault *o = q->o;

	ASSERT_HELD(&o->layer.lock);
	make_inner(q);
	q->state = PASSING;
	q->refs++;
	pthread_mutex_unlock(&o->layer.lock);
	origin_start(o->layer.inner, &q->in.req);
	pthread_mutex_lock(&o->layer.lock);
	q->state = PASSED;
	if (q->abandoned)
		abandon_inner(q);
	fault_put(q);
}

static void on_timer(struct timer *t)
{
	struct fault_request *q = CONTAINER_OF(t, struct fault_request, timer);
	struct fault *o = q->o;
	int status;

	pthread_mutex_lock(&o->layer.lock);
	if (!q->abandoned && q->verdict != FAIL) {
		fault_pass(q);
		pthread_mutex_unlock(&o->layer.lock);
		return;
	}
	status = q->abandoned ? -ECANCELED : -EIO;
	fault_let_go(q);
	pthread_mutex_unlock(&o->layer.lock);
	fault_tell(q, status);
}

/* Requires the lock. Returns a random number from 0 to 1. */
static double fault_draw(struct fault *o)
{
	uint64_t x = hash64(&o->drawn, sizeof(o->drawn), o->spec.seed);

	ASSERT_HELD(&o->layer.lock);
	o->drawn++;
	return (double)(x >> 11) * 0x1p-53;
}

static bool is_hit(const struct fault_request *q)
{
	const struct fault_spec *s = &q->o->spec;

	ASSERT_HELD(&q->o->layer.lock);
	return (q->outer->op == ORIGIN_READ || s->meta) &&
		(!*s->match || strstr(q->path, s->match));
}

static bool can_cut(struct origin_request *q)
{
	return q->op == ORIGIN_READ && origin_read_of(q)->len > 1;
}

static enum verdict judge(struct fault_request *q)
{
	const struct fault_spec *s = &q->o->spec;
	double x = fault_draw(q->o);

	ASSERT_HELD(&q->o->layer.lock);
	if (s->crash > 0 && x >= 1 - s->crash)
		(void)raise(SIGSEGV);
	if (x < s->stall)
		return STALL;
	if (x < s->stall + s->error)
		return FAIL;
	if (x < s->stall + s->error + s->cut)
		return can_cut(q->outer) ? CUT : FAIL;
	return PASS;
}

/* Requires the lock. Returns the time at which the rate allows the bytes of a
 * read. */
static uint64_t rated_ns(const struct fault_request *q, uint64_t at_ns)
{
	struct fault *o = q->o;

	ASSERT_HELD(&q->o->layer.lock);
	if (q->outer->op != ORIGIN_READ || !o->spec.rate_bytes)
		return at_ns;
	if (o->free_ns < at_ns)
		o->free_ns = at_ns;
	/* This cannot overflow, because reads are short. */
	o->free_ns +=
		origin_read_of(q->outer)->len * NS_PER_S / o->spec.rate_bytes;
	return o->free_ns;
}

/* Draw the verdict on q, and begin to execute it, which may free q. Requires
 * the lock, but releases it during calls of the inner origin. */
static void fault_begin(struct fault_request *q)
{
	struct fault *o = q->o;
	uint64_t now_ns = clock_now_ns(), at_ns = now_ns;

	ASSERT_HELD(&q->o->layer.lock);
	q->verdict = PASS;
	q->piece_bytes = 0;
	if (is_hit(q)) {
		q->verdict = judge(q);
		at_ns = rated_ns(q, now_ns + o->spec.delay_ns);
		q->piece_bytes = o->spec.piece_bytes;
	}
	if (q->verdict == STALL) {
		q->state = STALLED;
		list_add_tail(&o->stalled, &q->node);
	} else if (q->verdict != FAIL && at_ns == now_ns) {
		fault_pass(q);
	} else {
		q->state = WAITING;
		timer_set(o->timers, &q->timer, at_ns);
	}
}

static void fault_start(struct origin *base, struct origin_request *outer)
{
	struct fault *o = fault_of(base);
	struct fault_request *q = calloc(1, sizeof(*q));

	if (!q) {
		late_answer(o->layer.late, outer);
		return;
	}
	LOCK_SCOPE(&o->layer.lock);
	timer_init(&q->timer, on_timer);
	q->o = o;
	q->refs = 1;
	o->layer.requests++;
	q->outer = outer;
	q->path = any_path(outer);
	list_init(&q->node);
	outer->priv = q;
	fault_begin(q);
}

static void fault_abandon(struct origin *base, struct origin_read *r)
{
	struct fault *o = fault_of(base);
	struct fault_request *q;

	if (late_has(o->layer.late, &r->req))
		return;
	pthread_mutex_lock(&o->layer.lock);
	q = r->req.priv;
	if (q && q->state == PASSED) {
		abandon_inner(q);
	} else if (q && q->state == STALLED) {
		list_del(&q->node);
		cancel_later(q);
	} else if (q) {
		/* If the request is being passed on, or if its timer is firing,
		 * that thread looks at this flag. */
		q->abandoned = true;
		if (timer_cancel(o->timers, &q->timer))
			cancel_later(q);
	}
	pthread_mutex_unlock(&o->layer.lock);
}

/* -- The origin ------------------------------------------------------------ */

static const struct origin_ops fault_ops = {
	.file_new = layer_file_new,
	.file_free = layer_file_free,
	.start = fault_start,
	.abandon = fault_abandon,
};

int origin_fault_new(struct origin **out, struct origin *inner,
	const char *spec, struct timers *timers, struct error *err)
{
	CLEANUP_FREE struct fault *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return error_set(err, -ENOMEM, "fault: %m");
	rc = fault_spec_parse(&o->spec, spec, err);
	if (rc)
		return rc;
	rc = layer_init(&o->layer, &fault_ops, inner, RANK_FAULT);
	if (rc)
		return error_set(err, rc, "cannot start threads: %m");
	o->timers = timers;
	list_init(&o->stalled);
	*out = &steal_ptr(&o)->layer.base;
	return 0;
}

int origin_fault_set(struct origin *fault, const char *text, struct error *err)
{
	struct fault *o = fault_of(fault);
	struct list stalled;
	struct fault_spec spec;
	int rc = fault_spec_parse(&spec, text, err);

	if (rc)
		return rc;
	list_init(&stalled);
	pthread_mutex_lock(&o->layer.lock);
	o->spec = spec;
	o->drawn = 0;
	o->free_ns = 0;
	list_splice_tail(&stalled, &o->stalled);
	while (!list_empty(&stalled)) {
		struct fault_request *q =
			LIST_FIRST(&stalled, struct fault_request, node);

		list_del(&q->node);
		fault_begin(q);
	}
	pthread_mutex_unlock(&o->layer.lock);
	return 0;
}
