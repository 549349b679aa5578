/* SPDX-License-Identifier: MIT */
/*
 * The lock of a loader, and the turns of threads under it. A turn begins when a
 * thread takes the lock and ends when it releases it. During its turn the
 * thread makes its changes and calls no callback. At the end of the turn, end()
 * looks once for work that has become possible and marks the threads to wake.
 * They are woken after the lock was released.
 */
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "loader/core/ready.h"

/* The kinds of threads that sleep, and what each kind waits for. */
enum turn_who {
	TURN_WORKERS, /* workers: a serving to make, or steps to plan */
	TURN_CALLERS, /* callers of refrain_next(): a batch */
	/* The thread of mount help: a message to the mount */
	TURN_HELP,
	/* The clerk of a puller: the end; it wakes up by itself otherwise */
	TURN_PULLER,
	/* The caller of refrain_close(): the end of threads and calls */
	TURN_CLOSER,
	TURN_WHO,
};

struct turn_ops {
	/* Called when the lock was taken. */
	void (*begin)(void *arg);
	/* Called before the lock is released: does the follow-up work and marks
	 * the threads to wake. Returns the argument for start(), or NULL. */
	void *(*end)(void *arg);
	/* Called after the lock was released: starts the work that end() has
	 * chosen. */
	void (*start)(void *arg, void *chosen);
};

/* All members are private. */
struct turn {
	pthread_mutex_t lock;
	const struct turn_ops *ops; /* set once */
	void *arg;		    /* set once */
	pthread_cond_t who[TURN_WHO];
	/* All below is guarded by the lock. */
	/* Numbers of idle workers, and of those among them that are marked to
	 * be woken */
	uint32_t idle, woken;
	uint32_t workers; /* workers to wake at the end of this turn */
	/* For each of the other kinds of threads: the number of those that
	 * sleep and are not yet marked to be woken, and how often threads of
	 * the kind were woken */
	uint32_t asleep[TURN_WHO], rounds[TURN_WHO];
	bool marked[TURN_WHO];
	bool ready_changed; /* the flag of `ready` changed in this turn */
	/* The flag is set with the lock held; the descriptor is written without
	 * it */
	struct ready ready;
};

/* Returns 0, or -errno if no eventfd can be created. */
int turn_init(struct turn *t, const struct turn_ops *ops, void *arg);
void turn_release(struct turn *t);

void turn_lock(struct turn *t);
void turn_unlock(struct turn *t);

/* Hold the lock until the end of the enclosing scope, to read only. This is not
 * a turn: no follow-up work is done at its end. */
#define TURN_LOOK_SCOPE(t) LOCK_SCOPE(&(t)->lock)
/* Assert that the caller holds the lock. */
#define ASSERT_TURN(t) ASSERT_HELD(&(t)->lock)

/* Returns the descriptor that turn_ready() makes readable. */
int turn_fd(const struct turn *t);

/* Release the lock, sleep until woken, and take the lock again. This may return
 * without a wake-up, so the caller must check its condition. */
void turn_wait(struct turn *t, enum turn_who who);
/* Like turn_wait(), but sleep only until that time. Returns false when the time
 * has come. */
bool turn_wait_until(struct turn *t, enum turn_who who, uint64_t until_ns);

/* -- Call these with the lock held ----------------------------------------- */

/* Wake all threads of this kind at the end of the turn. Does nothing if none
 * sleeps. */
void turn_mark(struct turn *t, enum turn_who who);
/* Wake the thread in refrain_close() at once. The last call that uses the
 * loader does so. It is the only wake-up that is made with the lock held,
 * because the woken thread may free the turn as soon as the lock is
 * released. */
void turn_wake_closer(struct turn *t);
/* Mark n idle workers to be woken, including those that are marked already,
 * because there is work for n workers. */
void turn_mark_workers(struct turn *t, uint64_t n);
uint32_t turn_idle(const struct turn *t);
/* Set whether the descriptor is to poll readable. */
void turn_ready(struct turn *t, bool ready);
#endif
