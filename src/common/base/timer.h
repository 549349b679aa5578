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

/* Embedded in a struct of its owner. All members are private. */
struct timer {
	uint32_t magic;
	void (*fire)(struct timer *t); /* set once */
	/* Guarded by the lock of the timers. */
	uint64_t at_ns;
	/* the first child, which is due later, as all children are */
	struct timer *child;
	struct timer *next; /* the next sibling */
	/* the pointer that points to this timer; NULL: the timer is not set */
	struct timer **link;
};

/* Initialise a timer. timer_cancel() also accepts a timer of zeros. */
static inline void timer_init(struct timer *t, void (*fire)(struct timer *t))
{
	*t = (struct timer){.magic = MAGIC_timer, .fire = fire};
}

/* Create timers and start their thread. Returns 0 or -errno. */
int timers_new(struct timers **out);

/* Stop the thread. Timers that are still set never fire. NULL is allowed. */
void timers_free(struct timers *ts);

/* Call fire() once, at clock_now_ns() >= at_ns, on the timer thread, with no
 * lock held. If the timer is set already, its time changes. fire() must not
 * block. */
void timer_set(struct timers *ts, struct timer *t, uint64_t at_ns);

/* Returns true if the timer was set and will not fire now. Returns false if it
 * was not set, has fired, or is firing at this moment: fire() may still be
 * running, so the owner must keep a reference for it. */
bool timer_cancel(struct timers *ts, struct timer *t);

#endif
