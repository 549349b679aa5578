/* SPDX-License-Identifier: MIT */
/*
 * A descriptor that polls readable while a flag is set. The caller changes the
 * flag with its own lock held, and updates the descriptor after it has released
 * that lock, so that no thread makes a system call under it. Several threads
 * may do so at once.
 */
#ifndef CORE_READY_H
#define CORE_READY_H

#include <stdatomic.h>
#include <stdbool.h>

/* All members are private. */
struct ready {
	int fd; /* set once; an eventfd that holds 0 or 1 */
	/* FLAG, WRITTEN and WRITER; sequentially consistent */
	_Atomic unsigned state;
};

/* Returns 0, or -errno if no eventfd can be created; ready_close() is allowed
 * even then. */
int ready_open(struct ready *r);
void ready_close(struct ready *r);
int ready_fd(const struct ready *r);

/* Set the flag. The caller holds the lock that guards it. Returns true if the
 * flag has changed: then call ready_write() without the lock. */
bool ready_set(struct ready *r, bool ready);
/*
 * Make the descriptor poll readable if the flag is set, and not readable if it
 * is clear. Call this with no lock held. If another thread is already writing,
 * that thread will use the newest flag. In that case this call returns at once
 * if the flag is set. If the flag is clear, it waits until the other thread has
 * written, because a thread that has just taken the last batch must not find
 * the descriptor readable.
 */
void ready_write(struct ready *r);

#endif
