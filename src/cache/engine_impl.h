/* SPDX-License-Identifier: MIT */
/*
 * The lock of the cache, how to take it, and the work to do after releasing it;
 * see engine.c. Private to src/cache.
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
struct fill;

/*
 * Work to do once the lock has been released: callbacks and wake-ups of other
 * threads, which would otherwise block on the lock. Only engine_run() does it,
 * in this order. Requests to the origin come first because they take the
 * longest.
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

/* dispatch() starts the requests that can be started. run[kind]() does one job,
 * without the lock. If it returns a fill, unref() ends the job's reference. */
struct cache_jobs {
	void (*dispatch)(struct cache *c, struct after *a);
	void (*unref)(struct cache *c, struct fill *f);
	struct fill *(*run[AFTER_KINDS])(struct cache *c, struct list *link);
};

/* The members are engine.c's. */
struct cache_engine {
	const struct cache_jobs *jobs; /* set once */
	pthread_mutex_t lock;	       /* cache.lock */
	pthread_cond_t idle_cond;      /* of engine_wait() */
	struct list planned;	       /* of struct cache_plan, to be told */
	unsigned nstarting;	       /* of struct fetch, on their way */
	bool stopping;
};

void engine_init(struct cache *c, const struct cache_jobs *jobs);
void engine_release(struct cache *c);

/* Take the lock, with nothing to do after it. */
void engine_enter(struct cache *c, struct after *a);
/* Start the requests that can be started, release the lock, and run the
 * callbacks. */
void engine_run(struct cache *c, struct after *a);

/* Plain lock and unlock: to look at state, or around code that must not run
 * under the lock. */
void engine_lock(struct cache *c);
void engine_unlock(struct cache *c);

/* The functions below assert the lock. A plan has ended: let engine_run() tell
 * its owner. */
void engine_add_planned(struct cache *c, struct list *link);
/* A request will be given to its source: until engine_run() has done that, it
 * can be neither answered nor given up. */
void engine_add_start(struct cache *c, struct after *a, struct list *link);
bool engine_is_starting(const struct cache *c);
void engine_stop(struct cache *c);
bool engine_is_stopping(const struct cache *c);
/* Wait for engine_wake(), which is called when all fills are published, all
 * requests are started, or none is in flight. */
void engine_wait(struct cache *c);
bool engine_wait_until(struct cache *c, uint64_t until_ns); /* false: late */
void engine_wake(struct cache *c);

#endif
