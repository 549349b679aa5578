/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the retry origin; private to them. retry.c has the
 * states of a request.
 */
#ifndef LAYER_RETRY_IMPL_H
#define LAYER_RETRY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "origin/layer/layer_impl.h"

#define PAUSE_MAX_NS (5 * NS_PER_S)

struct retry {
	struct layer layer; /* its lock is called "lock" below */
	/* Set once. */
	struct timers *timers;
	struct counters *counters;
	struct retry_config config;
	_Atomic uint64_t turn; /* relaxed: counts draws of the jitter */
	unsigned waiting;      /* lock: requests that are not answered yet */
	uint64_t waiting_ns;   /* lock: time since when some are waiting */
	uint64_t heard_ns; /* lock: time when the inner origin sent anything */
	/* The next members belong to retry_health.c; lock. */
	uint64_t given_up;    /* requests that failed in this outage; 0: none */
	unsigned refused;     /* reads in a row that were refused */
	uint64_t gave_up_ns;  /* time of the last failure or refusal */
	bool lost_reads;      /* some of them were reads */
	uint64_t answered_ns; /* start of the last request that was answered */
};

/* A request in progress. */
struct retry_request {
	struct timer timer; /* end of the attempt or of the pause */
	struct retry *o;
	enum origin_op op; /* set once */
	struct origin_request
		*outer; /* lock: the caller's request; NULL: answered */
	/* lock: abandoned request that the note will answer */
	struct origin_request *dropped;
	struct attempt *last; /* lock: the current attempt, or NULL */
	unsigned refs;	      /* lock: attempts, timer, note */
	unsigned failed;      /* lock: attempts that failed or timed out */
	uint64_t due_ns;      /* lock: time the timer is set for */
	uint64_t until_ns;    /* lock: end of all tries */
	uint64_t started_ns;  /* lock: start of the current attempt */
	size_t got;	      /* lock: bytes of a read passed up */
	bool busy;	      /* lock: bytes or a batch are being passed up */
	struct origin_file *file;
	struct thread_job note;
	char path[]; /* path of a stat or a list */
};

/* An attempt at a request. The inner origin is called without the lock. */
struct attempt {
	uint32_t magic;
	struct retry_request *q; /* holds a reference */
	unsigned refs; /* lock: until it is answered, and during each call */
	bool started;  /* lock */
	bool unwanted; /* lock: abandon it as soon as it is started */
	union origin_any in;
};

/* -- retry_attempt.c ------------------------------------------------------- */

/* Call these with the lock held, except retry_on_timer(). */

void retry_put(struct retry_request *q);

/* Cancel the timer; one that is firing just now has no effect. */
void retry_disarm(struct retry_request *q);

/* Set or move the timer. */
void retry_arm(struct retry_request *q, uint64_t at_ns);

/*
 * Take the caller's request, to answer it without the lock. Returns NULL if it
 * has been answered.
 */
struct origin_request *retry_take_outer(struct retry_request *q);

void retry_attempt_put(struct attempt *a);

/* Abandon the attempt; the lock is released meanwhile. */
void retry_attempt_abandon(struct attempt *a);

/*
 * Begin the next attempt; the lock is released meanwhile. -ENOMEM: no attempt
 * has begun.
 */
int retry_try(struct retry_request *q);

/* The current attempt has ended: count its time. */
void retry_time(const struct retry_request *q);

/* An attempt failed with `status`. Releases the lock. The caller has a
 * reference. */
void retry_failed(struct retry_request *q, int status);

void retry_on_timer(struct timer *t);

/* -- retry_health.c -------------------------------------------------------- */

/* Call these with the lock held. */

/* The inner origin has sent something. */
void retry_heard(struct retry *o);

/* The origin has answered the current attempt. A refused read counts as an
 * answer, but is recorded. */
void retry_answered(const struct retry_request *q);
void retry_refused(const struct retry_request *q, int status);

/* An attempt failed, and another one will follow. */
void retry_report_again(const struct retry_request *q, int status);

/* Record that the request has failed. `cause` is the status of its last
 * attempt. */
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
