/* SPDX-License-Identifier: MIT */
/*
 * How to take the lock of the cache, and the work to do after releasing it; see
 * cache_jobs.c.
 */
#ifndef CACHE_JOBS_IMPL_H
#define CACHE_JOBS_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/list.h"
#include "common/base/lock.h"

struct cache;
struct fill;

/*
 * Work to do once the lock has been released: callbacks and wake-ups of other
 * threads, which would otherwise block on the lock. Only jobs_run() does it,
 * in this order. Requests to the origin come first because they take the
 * longest.
 */
enum after_kind {
	AFTER_START,   /* struct fetch: give it to its provider */
	AFTER_ABANDON, /* struct fetch, referenced: give it up */
	AFTER_READ,    /* struct cache_read: answer it */
	AFTER_WARM,    /* struct cache_warm: answer it */
	AFTER_STALE,   /* struct fill, referenced: report a stale version */
	AFTER_PUSH,    /* struct push: push it to its provider */
	AFTER_PUBLISH, /* struct fill, referenced: give it to a publisher */
	/* Struct cache_plan, in cache_jobs.planned: call done() */
	AFTER_PLANNED,
	AFTER_KINDS
};

struct after {
	struct list list[AFTER_KINDS];
};

/* The members belong to cache_jobs.c. */
struct cache_jobs {
	pthread_mutex_t lock;	  /* cache.lock */
	pthread_cond_t idle_cond; /* of jobs_wait() */
	struct list planned;	  /* struct cache_plan: done() is due */
	unsigned nstarting; /* requests that are being given to providers */
	bool stopping;
};

void jobs_init(struct cache *c);
void jobs_release(struct cache *c);

/* Take the lock, and begin an empty list of jobs. */
void jobs_enter(struct cache *c, struct after *a);
/* Start the requests that can be started, release the lock, and run the
 * callbacks. */
void jobs_run(struct cache *c, struct after *a);

/* Take or release the lock without jobs: to read state, or around code that
 * must not run under the lock. */
void jobs_lock(struct cache *c);
void jobs_unlock(struct cache *c);

/* The functions below assert the lock. Let jobs_run() tell the owner of this
 * plan that it has ended. */
void jobs_add_planned(struct cache *c, struct list *link);
/* Let jobs_run() give a request to its provider. Until then the request can be
 * neither answered nor given up. */
void jobs_add_start(struct cache *c, struct after *a, struct list *link);
bool jobs_is_starting(const struct cache *c);
void jobs_stop(struct cache *c);
bool jobs_is_stopping(const struct cache *c);
/* Wait for jobs_wake(), which is called when all fills are published, all
 * requests are started, or none is in flight. */
void jobs_wait(struct cache *c);
bool jobs_wait_until(struct cache *c, uint64_t until_ns); /* false: late */
void jobs_wake(struct cache *c);

#endif
