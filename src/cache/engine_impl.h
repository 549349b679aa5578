/* SPDX-License-Identifier: MIT */
/*
 * The lock of the cache, the way in and the way out of it; see engine.c.
 * Private to src/cache.
 */
#ifndef CACHE_ENGINE_IMPL_H
#define CACHE_ENGINE_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/lock.h"

struct cache;

/*
 * Work to do once the lock has been released: callbacks and wake-ups of other
 * threads, which would run into the lock. Only engine_run() does it, in this
 * order: requests to the origin first, for they take the longest.
 */
enum after_kind {
	AFTER_START,   /* of struct fetch: give it to its source */
	AFTER_READ,    /* of struct cache_read: answer it */
	AFTER_WARM,    /* of struct cache_warm: answer it */
	AFTER_STALE,   /* of struct fill, referenced: tell the owner */
	AFTER_PUSH,    /* of struct push */
	AFTER_PUBLISH, /* of struct fill, referenced: to a publisher */
	AFTER_PLANNED, /* of struct cache_plan; in cache_engine.planned */
	AFTER_KINDS
};

struct after {
	struct list list[AFTER_KINDS];
};

/* Start what can be started; and do one job of each kind: take it off its
 * list, and drop the lock meanwhile. */
struct cache_jobs {
	void (*dispatch)(struct cache *c, struct after *a);
	void (*run[AFTER_KINDS])(struct cache *c, struct list *link);
};

/* The members are engine.c's. */
struct cache_engine {
	const struct cache_jobs *jobs; /* set once */
	pthread_mutex_t lock;	       /* cache.lock */
	pthread_cond_t idle_cond;      /* of engine_wait() */
	struct list planned;	       /* of struct cache_plan, to be told */
	bool stopping;
};

void engine_init(struct cache *c, const struct cache_jobs *jobs);
void engine_release(struct cache *c);

/* Take the lock, with nothing to do after it. */
void engine_enter(struct cache *c, struct after *a);
/* Start what can be started, run the callbacks; the lock is free then. */
void engine_run(struct cache *c, struct after *a);

/* For a look, and around what must not run under the lock. */
void engine_lock(struct cache *c);
void engine_unlock(struct cache *c);

/* The rest assert the lock. A plan has ended: engine_run() tells its owner. */
void engine_add_planned(struct cache *c, struct list *link);
void engine_stop(struct cache *c);
bool engine_is_stopping(const struct cache *c);
/* Wait for engine_wake(): all are published, all are started, or nothing is out
 * any more. */
void engine_wait(struct cache *c);
bool engine_wait_until(struct cache *c, uint64_t until_ns); /* false: late */
void engine_wake(struct cache *c);

#endif
