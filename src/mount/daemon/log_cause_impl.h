/* SPDX-License-Identifier: MIT */
/*
 * The causes of events: events of the same kind with the same error, HTTP
 * status, tier or peer have the same cause. Each cause has its own limits, so
 * that a new cause is written at once even if the log is full of an older one.
 * The caller does the locking.
 */
#ifndef DAEMON_LOG_CAUSE_IMPL_H
#define DAEMON_LOG_CAUSE_IMPL_H

#include "mount/daemon/log_limit_impl.h"
#include "mount/daemon/log_line_impl.h"

/* Limit for causes at a time. All further ones of a kind share one limit. */
#define LOG_CAUSES_MAX 128u

enum {
	LIMIT_USUAL,
	LIMIT_TURN, /* changes of state */
	LIMITS,
};

/* All zero: unused. */
struct log_cause {
	uint64_t hash; /* hash of the cause; 0: unused */
	struct log_limit limit[LIMITS];
	struct log_record last; /* its last event, whether written or not */
	uint64_t last_ns;	/* its time; 0: there was none */
	uint64_t events;
};

struct log_causes {
	/* For all causes without their own */
	struct log_cause of_kind[EVENT_KINDS];
	struct log_cause own[LOG_CAUSES_MAX];
};

#define LOG_CAUSES_ALL (EVENT_KINDS + LOG_CAUSES_MAX)

/* The i-th of LOG_CAUSES_ALL. */
struct log_cause *log_cause_at(struct log_causes *all, size_t i);

/* Find the cause of an event, and note the event as the last of its cause. */
struct log_cause *log_cause_note(struct log_causes *all, const struct event *e,
	const struct log_record *r, uint64_t now_ns);

/* The mean time between two lines in the long run, by kind of limit. */
uint64_t log_cause_refill_ns(size_t limit);

#endif
