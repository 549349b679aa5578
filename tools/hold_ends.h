/* SPDX-License-Identifier: MIT */
/*
 * How the daemons of a mount have ended, and whether its holder starts another
 * one. A daemon that fails, or dies while it serves, again and again must not
 * keep programs waiting for ever, and one that dies once an hour is started
 * for ever. Times are of a monotonic clock, in ms. One thread.
 */
#ifndef TOOLS_HOLD_ENDS_H
#define TOOLS_HOLD_ENDS_H

#include <stdbool.h>

/* Daemons that fail: so many are started in this time. */
#define HOLD_FAILURES_MAX 5
#define HOLD_FAILURES_MS 60000
/* Daemons in a row that serve for less than this time, however they end. */
#define HOLD_SHORT_MAX 1000
#define HOLD_SHORT_MS 60000

struct hold_ends {
	long failed_ms[HOLD_FAILURES_MAX - 1]; /* the last failures */
	unsigned failures;
	unsigned shorts; /* in a row */
};

/*
 * Note the end of a daemon that served for `served_ms`; 0: it did not. It has
 * failed unless somebody has ended it, as SIGKILL does. Returns why no other
 * one may be started, or NULL.
 */
const char *hold_ends_note(
	struct hold_ends *e, bool failed, long served_ms, long now_ms);

/* How long to wait before the next daemon is started after a failure. */
long hold_ends_pause_ms(const struct hold_ends *e, long now_ms);

#endif
