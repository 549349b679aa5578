/* SPDX-License-Identifier: MIT */
/* The structs and functions of the files of the retry origin. retry.c draws the
 * states of a request. */
#ifndef LAYER_RETRY_IMPL_H
#define LAYER_RETRY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "origin/layer/layer_impl.h"

#define PAUSE_MAX_NS (5 * NS_PER_S)

struct retry {
	struct layer layer; /* "the lock" below is the lock of the layer */
	/* Set once. */
	struct timers *timers;
	struct counters *counters;
	struct retry_config config;
	_Atomic uint64_t turn; /* relaxed: number of random pauses so far */
	unsigned waiting; /* guarded by the lock: requests without an answer */
	/* guarded by the lock: time since when there are such requests */
	uint64_t waiting_ns;
	/* guarded by the lock: time at which the inner origin last sent
	 * anything */
	uint64_t heard_ns;
	/* The members below belong to retry_health.c, and are guarded by the
	 * lock. */
	uint64_t given_up;   /* requests that failed in this outage; 0: none */
	unsigned refused;    /* reads in a row that were refused */
	uint64_t gave_up_ns; /* time of the last failure or refusal */
	bool lost_reads;     /* some of the requests that failed were reads */
	/* time at which the last request that was answered had begun */
	uint64_t answered_ns;
};

/* A request in progress. */
struct retry_request {
	/* fires at the end of the attempt or of the pause */
	struct timer timer;
	struct retry *o;
	enum origin_op op; /* set once */
	struct origin_request
		/* the caller's request; NULL: answered. Guarded by the lock */
		*outer;
	/* A request that was abandoned, and that `note` will answer. Guarded by
	 * the lock */
	struct origin_request *dropped;
	/* the current attempt, or NULL; guarded by the lock */
	struct attempt *last;
	/* 1 for each of attempts, timer and note; guarded by the lock */
	unsigned refs;
	/* number of attempts that failed or timed out; guarded by the lock */
	unsigned failed;
	/* time for which the timer is set; guarded by the lock */
	uint64_t due_ns;
	/* time at which the request is given up; guarded by the lock */
	uint64_t until_ns;
	/* time at which the current attempt began; guarded by the lock */
	uint64_t started_ns;
	/* bytes of a read that the caller has got; guarded by the lock */
	size_t got;
	/* the caller is getting bytes or a batch; guarded by the lock */
	bool busy;
	struct origin_file *file;
	struct thread_job note;
	char path[]; /* path of a stat or a list */
};

/* An attempt at a request. The inner origin is called without the lock. */
struct attempt {
	uint32_t magic;
	struct retry_request *q; /* with a reference to it */
	/* 1 until the answer, and 1 during each call of the inner origin;
	 * guarded by the lock */
	unsigned refs;
	bool started; /* guarded by the lock */
	/* the attempt is to be abandoned as soon as it has started; guarded by
	 * the lock */
	bool unwanted;
	union origin_any in;
};

/* -- retry_attempt.c ------------------------------------------------------- */

/* Call these with the lock held, but not retry_on_timer(). */

void retry_put(struct retry_request *q);

/* Cancel the timer. If it is firing just now, it has no effect. */
void retry_disarm(struct retry_request *q);

/* Set or move the timer. */
void retry_arm(struct retry_request *q, uint64_t at_ns);

/* Take the caller's request from q, in order to answer it without the lock.
 * Returns NULL if it has been answered. */
struct origin_request *retry_take_outer(struct retry_request *q);

void retry_attempt_put(struct attempt *a);

/* Abandon the attempt. Releases the lock in the meantime. */
void retry_attempt_abandon(struct attempt *a);

/* Begin the next attempt. Releases the lock in the meantime. Returns 0, or
 * -ENOMEM if no attempt has begun. */
int retry_try(struct retry_request *q);

/* The current attempt has ended: count the time that it took. */
void retry_time(const struct retry_request *q);

/* Handle an attempt that failed with `status`. Releases the lock. The caller
 * has a reference. */
void retry_failed(struct retry_request *q, int status);

void retry_on_timer(struct timer *t);

/* -- retry_health.c -------------------------------------------------------- */

/* Call these with the lock held. */

/* Note that the inner origin has sent something. */
void retry_heard(struct retry *o);

/* Note that the origin has answered an attempt that began at `begun_ns`. A
 * refused read counts as an answer, but the number of these in a row is
 * noted. */
void retry_answered(struct retry *o, enum origin_op op, uint64_t begun_ns);
void retry_refused(const struct retry_request *q, int status);

/* Report that an attempt failed and another one will follow. */
void retry_report_again(const struct retry_request *q, int status);

/* Note that the request has failed. `cause` is the status of its last attempt.
 */
void retry_given_up(const struct retry_request *q, int cause);

/* -- retry_answer.c -------------------------------------------------------- */

/* Callbacks of the inner origin. */
void retry_done(struct origin_request *in, int status);
void retry_read_data(
	struct origin_read *in, uint64_t off, const void *bytes, size_t len);
void retry_list_batch(
	struct origin_list *in, const struct file_entry *entries, size_t n);
void retry_list_restart(struct origin_list *in);

#endif
