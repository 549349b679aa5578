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

/* Set the flag, with the lock that the caller uses for it. True if that changed
 * it: then ready_write() is due. */
bool ready_set(struct ready *r, bool ready);
/*
 * Let the descriptor poll as the flag is, without any lock held. If another
 * thread is doing that, that thread sees the newest flag: this returns at once
 * if the flag is set. If it is not, this waits for the one write, so that the
 * descriptor of a thread that has taken the last thing does not poll readable.
 */
void ready_write(struct ready *r);

#endif
