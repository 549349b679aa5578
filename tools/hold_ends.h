/* SPDX-License-Identifier: MIT */
/*
 * How the daemons of a mount have ended, and whether the holder starts another
 * one. If daemons fail, or die while they serve, again and again, programs must
 * not wait for ever; a daemon that dies once an hour is always started again.
 * Times are those of a monotonic clock, in ms. One thread.
 */
#ifndef TOOLS_HOLD_ENDS_H
#define TOOLS_HOLD_ENDS_H

#include <stdbool.h>

/* The maximum number of failures within this time. */
#define HOLD_FAILURES_MAX 5
#define HOLD_FAILURES_MS 60000
/* The maximum number of daemons in a row that serve for less than this time,
 * however they end. */
#define HOLD_SHORT_MAX 1000
#define HOLD_SHORT_MS 60000

struct hold_ends {
	long failed_ms[HOLD_FAILURES_MAX - 1]; /* the last failures */
	unsigned failures;
	unsigned shorts; /* number of short ones in a row */
};

/*
 * Record the end of a daemon that served for `served_ms`; 0: it did not serve.
 * It has failed unless it was ended from outside, for example by SIGKILL.
 * Returns the reason why no other daemon may be started, or NULL.
 */
const char *hold_ends_note(
	struct hold_ends *e, bool failed, long served_ms, long now_ms);

/* The pause before the next daemon is started after a failure. */
long hold_ends_pause_ms(const struct hold_ends *e, long now_ms);

#endif
