/* SPDX-License-Identifier: MIT */
/*
 * A descriptor that polls readable while a flag is set. The flag is changed
 * with the caller's lock held, and the descriptor brought up to date after it
 * has been released, so that no wake-up is written under a lock. Several
 * threads may do that at once.
 */
#ifndef CORE_READY_H
#define CORE_READY_H

#include <stdatomic.h>
#include <stdbool.h>

/* All private. */
struct ready {
	int fd;			/* set once; an eventfd that holds 0 or 1 */
	_Atomic unsigned state; /* sequentially consistent */
};

/* Returns -errno if no eventfd can be created; ready_close() is allowed then.
 */
int ready_open(struct ready *r);
void ready_close(struct ready *r);
int ready_fd(const struct ready *r);

/* Set the flag, with the lock held that the caller uses for it. Returns true if
 * the flag has changed: then call ready_write(). */
bool ready_set(struct ready *r, bool ready);
/*
 * Make the descriptor poll readable if the flag is set and not readable if it
 * is clear. Call it with no lock held. If another thread is doing that already,
 * it will use the newest flag. Then this returns at once if the flag is set. If
 * the flag is clear, this waits until the other thread has written: a thread
 * that has just taken the last batch must not find the descriptor readable.
 */
void ready_write(struct ready *r);

#endif
