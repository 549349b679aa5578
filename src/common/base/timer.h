/* SPDX-License-Identifier: MIT */
/*
 * Timers: one thread that runs callbacks at given times. Used for time-outs,
 * backoff and injected delays. Any thread may set or cancel.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/magic.h"

struct timers;

/* Embedded in its owner. All private. */
struct timer {
	uint32_t magic;
	void (*fire)(struct timer *t); /* set once */
	/* Guarded by the lock of the timers. */
	uint64_t at_ns;
	/* the first of its children, which are all later */
	struct timer *child;
	struct timer *next;  /* its sibling */
	struct timer **link; /* the pointer that points here; NULL: not set */
};

/* Initialise a timer. One that is all zero may be cancelled, too. */
static inline void timer_init(struct timer *t, void (*fire)(struct timer *t))
{
	*t = (struct timer){.magic = MAGIC_timer, .fire = fire};
}

/* Create timers and start their thread. Returns 0 or -errno. */
int timers_new(struct timers **out);

/* Stop the thread; timers still set never fire. NULL is allowed. */
void timers_free(struct timers *ts);

/*
 * Call fire() once at clock_now_ns() >= at_ns, on the timer thread, with no
 * lock held. If the timer is set already, the time changes. The callback must
 * not block.
 */
void timer_set(struct timers *ts, struct timer *t, uint64_t at_ns);

/*
 * Returns true if the timer was set and now will not fire. Returns false if it
 * was not set, has fired or is firing right now: the callback may still be
 * running, so the owner must keep a reference for it.
 */
bool timer_cancel(struct timers *ts, struct timer *t);

#endif
