/* SPDX-License-Identifier: MIT */
/*
 * Decides whether the holder starts another daemon, from how the earlier ones
 * have ended. The holder gives up if daemons fail, or die soon, again and
 * again: otherwise programs would wait for ever. A daemon that dies once an
 * hour is always started again. Times are in ms of a monotonic clock. One
 * thread.
 */
#ifndef TOOLS_HOLD_ENDS_H
#define TOOLS_HOLD_ENDS_H

#include <stdbool.h>

/* The holder gives up after this many failures within this time. */
#define HOLD_FAILURES_MAX 5
#define HOLD_FAILURES_MS 60000
/* The holder also gives up after this many daemons in a row that serve for less
 * than this time, even if none of them failed. */
#define HOLD_SHORT_MAX 1000
#define HOLD_SHORT_MS 60000

struct hold_ends {
	long failed_ms[HOLD_FAILURES_MAX - 1]; /* times of the last failures */
	unsigned failures;
	/* number of daemons in a row that served for a short time */
	unsigned shorts;
};

/* Record the end of a daemon that has served for `served_ms`; 0: it has not
 * served. `failed` is false if another process ended it, for example by
 * SIGKILL. Returns the reason why no other daemon may be started, or NULL. */
const char *hold_ends_note(
	struct hold_ends *e, bool failed, long served_ms, long now_ms);

/* Returns the pause between a failure and the start of the next daemon. */
long hold_ends_pause_ms(const struct hold_ends *e, long now_ms);

#endif
