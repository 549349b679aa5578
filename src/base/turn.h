/* SPDX-License-Identifier: MIT */
/*
 * The lock of a loader, and the end of every turn under it. Whoever has taken
 * the lock changes what it came to change and calls nobody; when it gives the
 * lock back, end() looks once at what can go on because of that, and marks who
 * is to be woken. They are woken after the lock has been released.
 */
#ifndef BASE_TURN_H
#define BASE_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

/* Who sleeps until what. */
enum turn_who {
	TURN_WORKERS, /* idle ones: a serving, or a walk of the planner */
	TURN_CALLERS, /* refrain_next(): a batch */
	TURN_ALONE,   /* a worker in the middle of a serving: memory */
	TURN_HELP,    /* the thread for a mount's help: something to say */
	TURN_CLOSER,  /* refrain_close(): the end of threads and calls */
	TURN_WHO,
};

struct turn_ops {
	/* The lock was taken. */
	void (*begin)(void *arg);
	/* It will be released: do what follows, and mark. What start() gets, or
	 * NULL. */
	void *(*end)(void *arg);
	/* It was released: start what end() has chosen. */
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
	/* Of the others: asleep and not marked; how often they were. */
	uint32_t asleep[TURN_WHO], rounds[TURN_WHO];
	bool marked[TURN_WHO];
	bool ready_changed; /* in this turn */
	/* The descriptor that polls readable. Whoever changes `ready` writes
	 * what is then the newest, under a lock that is for nothing else. */
	pthread_mutex_t event_lock;
	int event_fd;	    /* set once */
	_Atomic bool ready; /* changed with the lock; relaxed would do */
	bool written;	    /* event_lock */
};

/* -errno: there is no eventfd. */
int turn_init(struct turn *t, const struct turn_ops *ops, void *arg);
void turn_release(struct turn *t);

void turn_lock(struct turn *t);
void turn_unlock(struct turn *t);

/*
 * Give the lock back and sleep until woken; the lock is held again then. It may
 * come back for no reason.
 */
void turn_wait(struct turn *t, enum turn_who who);
/* The same until that time: false when it has come. */
bool turn_wait_until(struct turn *t, enum turn_who who, uint64_t until_ns);

/* -- With the lock -- */

/* All who sleep until that are to look. Nothing if nobody does. */
void turn_mark(struct turn *t, enum turn_who who);
/* The same for refrain_close(), at once: for a call that is the last to touch
 * the loader. */
void turn_wake_closer(struct turn *t);
/* There is work for so many workers: as many idle ones are woken. */
void turn_mark_workers(struct turn *t, uint64_t n);
uint32_t turn_idle(const struct turn *t);
/* Whether the descriptor polls readable. */
void turn_ready(struct turn *t, bool ready);
#endif
