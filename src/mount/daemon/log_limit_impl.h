/* SPDX-License-Identifier: MIT */
/*
 * Limits how often events of one cause are written: LOG_BURST lines at once,
 * then one line every LOG_REFILL_NS. A fault that lasts a day gives 44 lines of
 * each kind, and all faults at once less than 1 MB a day. Changes of state have
 * a limit of their own, with LOG_TURN_REFILL_NS. So the last change is in the
 * log after this time at the latest, however often the state changes.
 */
#ifndef DAEMON_LOG_LIMIT_IMPL_H
#define DAEMON_LOG_LIMIT_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

#define LOG_BURST 8u
#define LOG_REFILL_NS (40 * 60 * NS_PER_S)
#define LOG_TURN_REFILL_NS (60 * NS_PER_S)

/* A struct of zeros stands for a cause without events. */
struct log_limit {
	/* Time at which LOG_BURST lines may be written again */
	uint64_t free_ns;
	/* Events since the last line that were not written */
	uint64_t suppressed;
	uint64_t since_ns; /* wall-clock time of the first of these events */
};

/* May an event at `now_ns` be written? If not, the event is counted as
 * suppressed, and a summary of all suppressed events follows later. */
static inline bool log_limit_take(struct log_limit *l, uint64_t refill_ns,
	uint64_t now_ns, uint64_t wall_ns)
{
	if (l->suppressed == 0 &&
		l->free_ns <= now_ns + (LOG_BURST - 1) * refill_ns) {
		l->free_ns =
			(l->free_ns > now_ns ? l->free_ns : now_ns) + refill_ns;
		return true;
	}
	if (l->suppressed++ == 0)
		l->since_ns = wall_ns;
	return false;
}

/* Returns the time at which the summary of suppressed events is due;
 * UINT64_MAX: no event was suppressed. */
static inline uint64_t log_limit_due_ns(
	const struct log_limit *l, uint64_t refill_ns)
{
	uint64_t burst_ns = (LOG_BURST - 1) * refill_ns;

	if (l->suppressed == 0)
		return UINT64_MAX;
	return l->free_ns > burst_ns ? l->free_ns - burst_ns : 0;
}

/* Begin a summary. Returns the number of suppressed events. */
static inline uint64_t log_limit_sum(
	struct log_limit *l, uint64_t refill_ns, uint64_t now_ns)
{
	uint64_t n = l->suppressed;

	l->free_ns = (l->free_ns > now_ns ? l->free_ns : now_ns) + refill_ns;
	l->suppressed = 0;
	return n;
}

#endif
