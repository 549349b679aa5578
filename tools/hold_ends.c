/* SPDX-License-Identifier: MIT */
/* Counts the ends of daemons; see hold_ends.h. */
#include "hold_ends.h"

#include <stddef.h>

#define FAILURES_KEPT (HOLD_FAILURES_MAX - 1)
#define PAUSE_MS 100
#define PAUSE_MAX_MS 5000

/* Record a failure in place of the oldest one. Returns true if it is
 * the failure number HOLD_FAILURES_MAX within HOLD_FAILURES_MS. */
static bool too_many_failures(struct hold_ends *e, long now_ms)
{
	long *at = &e->failed_ms[e->failures % FAILURES_KEPT];
	bool many = e->failures++ >= FAILURES_KEPT &&
		now_ms - *at < HOLD_FAILURES_MS;

	*at = now_ms;
	return many;
}

const char *hold_ends_note(
	struct hold_ends *e, bool failed, long served_ms, long now_ms)
{
	e->shorts = served_ms < HOLD_SHORT_MS ? e->shorts + 1 : 0;
	if (failed && too_many_failures(e, now_ms))
		return "the daemon failed too often";
	if (e->shorts >= HOLD_SHORT_MAX)
		return "too many daemons in a row served for less than a "
		       "minute";
	return NULL;
}

long hold_ends_pause_ms(const struct hold_ends *e, long now_ms)
{
	long pause = 0;

	for (unsigned i = 0; i < FAILURES_KEPT && i < e->failures; i++)
		if (now_ms - e->failed_ms[i] < HOLD_FAILURES_MS)
			pause = pause ? pause * 2 : PAUSE_MS;
	return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}
