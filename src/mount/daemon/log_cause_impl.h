/* SPDX-License-Identifier: MIT */
/*
 * The causes of events. Events of the same kind with the same error, HTTP
 * status, tier or peer have the same cause. Each cause has limits of its own,
 * so that an event of a new cause is written at once even if another cause has
 * used up its limit. The caller holds a lock.
 */
#ifndef DAEMON_LOG_CAUSE_IMPL_H
#define DAEMON_LOG_CAUSE_IMPL_H

#include "mount/daemon/log_limit_impl.h"
#include "mount/daemon/log_line_impl.h"

/* Maximum number of causes with limits of their own. Events of further causes
 * share one limit for each kind of event. */
#define LOG_CAUSES_MAX 128u

enum {
	LIMIT_USUAL,
	LIMIT_TURN, /* for changes of state */
	LIMITS,
};

/* An element of zeros is unused. */
struct log_cause {
	uint64_t hash; /* hash that identifies the cause; 0: unused */
	struct log_limit limit[LIMITS];
	struct log_record last; /* the last event, even if it was not written */
	uint64_t last_ns;	/* time of the last event; 0: there was none */
	uint64_t events;
};

struct log_causes {
	/* of_kind[k] is for the events of kind k whose cause is not in `own` */
	struct log_cause of_kind[EVENT_KINDS];
	struct log_cause own[LOG_CAUSES_MAX];
};

#define LOG_CAUSES_ALL (EVENT_KINDS + LOG_CAUSES_MAX)

/* Returns cause i, which is less than LOG_CAUSES_ALL. */
struct log_cause *log_cause_at(struct log_causes *all, size_t i);

/* Find the cause of an event, and note the event as the last one of this
 * cause. */
struct log_cause *log_cause_note(struct log_causes *all, const struct event *e,
	const struct log_record *r, uint64_t now_ns);

/* Returns the mean time between two lines in the long run, for LIMIT_USUAL or
 * LIMIT_TURN. */
uint64_t log_cause_refill_ns(size_t limit);

#endif
