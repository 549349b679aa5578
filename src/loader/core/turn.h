/* SPDX-License-Identifier: MIT */
/*
 * The lock of a loader, and the work at the end of every turn under it. The
 * holder of the lock makes its changes and calls nobody. When it releases the
 * lock, end() looks once for work that can go on because of the changes and
 * marks the threads to wake. They are woken after the lock has been released.
 */
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "loader/core/ready.h"

/* The sleepers and what they wait for. */
enum turn_who {
	TURN_WORKERS, /* idle workers: a serving, or planning */
	TURN_CALLERS, /* refrain_next(): a batch */
	TURN_HELP,    /* the thread for a mount's help: something to say */
	TURN_CLOSER,  /* refrain_close(): the end of threads and calls */
	TURN_WHO,
};

struct turn_ops {
	/* The lock was taken. */
	void (*begin)(void *arg);
	/* The lock will be released: do the follow-up work and mark sleepers.
	 * Returns the argument for start(), or NULL. */
	void *(*end)(void *arg);
	/* The lock was released: start the work that end() has chosen. */
	void (*start)(void *arg, void *chosen);
};

/* All private. */
struct turn {
	pthread_mutex_t lock;
	const struct turn_ops *ops; /* set once */
	void *arg;		    /* set once */
	pthread_cond_t who[TURN_WHO];
	/* The lock. */
	uint32_t idle, woken; /* workers: asleep; of these, those marked */
	uint32_t workers;     /* to be woken at the end of this turn */
	/* For the other kinds of threads: how many sleep and are not marked to
	 * be woken; how often they were woken. */
	uint32_t asleep[TURN_WHO], rounds[TURN_WHO];
	bool marked[TURN_WHO];
	bool ready_changed; /* in this turn */
	struct ready ready; /* set with the lock, written without */
};

/* Returns -errno if no eventfd can be created. */
int turn_init(struct turn *t, const struct turn_ops *ops, void *arg);
void turn_release(struct turn *t);

void turn_lock(struct turn *t);
void turn_unlock(struct turn *t);

/* Hold the lock until the end of the enclosing scope, only to look. This is not
 * a turn: no follow-up work is done at its end. */
#define TURN_LOOK_SCOPE(t) LOCK_SCOPE(&(t)->lock)
/* The caller has the lock. */
#define ASSERT_TURN(t) ASSERT_HELD(&(t)->lock)

/* The descriptor that polls readable; see turn_ready(). */
int turn_fd(const struct turn *t);

/* Release the lock, sleep until woken, and take the lock again. May return
 * without having been woken. */
void turn_wait(struct turn *t, enum turn_who who);
/* The same until a given time; returns false when it has come. */
bool turn_wait_until(struct turn *t, enum turn_who who, uint64_t until_ns);

/* -- With the lock -- */

/* Wake all threads of this kind at the end of the turn. Does nothing if none
 * sleeps. */
void turn_mark(struct turn *t, enum turn_who who);
/* Wake the thread in refrain_close() at once. The last call that uses the
 * loader does this. It is the only wake-up with the lock held, because the
 * woken thread may free the turn as soon as the lock is released. */
void turn_wake_closer(struct turn *t);
/* There is work for n workers: wake as many idle ones. */
void turn_mark_workers(struct turn *t, uint64_t n);
uint32_t turn_idle(const struct turn *t);
/* Set whether the descriptor polls readable. */
void turn_ready(struct turn *t, bool ready);
#endif
