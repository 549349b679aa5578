/* SPDX-License-Identifier: MIT */
/*
 * How to take the lock of the cache, and jobs to do after releasing it; see
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

/* Kinds of jobs to do once the lock has been released. They are callbacks, and
 * wake-ups of other threads, which would block on the lock if they were woken
 * before. jobs_run() does them in this order. Requests to the origin come first
 * because they take the longest. */
enum after_kind {
	AFTER_START,   /* struct fetch: give it to its provider */
	AFTER_ABANDON, /* struct fetch, referenced: give up the request */
	AFTER_READ,    /* struct cache_read: call done() */
	AFTER_WARM,    /* struct cache_warm: call done() */
	/* Struct fill, referenced: report that its version is stale */
	AFTER_STALE,
	AFTER_PUSH,    /* struct push: push it to its provider */
	AFTER_PUBLISH, /* struct fill, referenced: give it to a publisher */
	/* Struct cache_plan, which waits in cache_jobs.planned: call done() */
	AFTER_PLANNED,
	AFTER_KINDS
};

struct after {
	struct list list[AFTER_KINDS];
	/* This thread serves a reader that waits, so it does itself what no
	 * device or server delays. It reads from the origin at once; cleared
	 * after the first try, so that the reader does not wait for others. */
	bool reads_now;
	/* It writes complete items to tiers in memory. */
	bool writes_now;
};

/* Only cache_jobs.c uses the members. */
struct cache_jobs {
	pthread_mutex_t lock;	  /* cache.lock */
	pthread_cond_t idle_cond; /* jobs_wait() waits here */
	/* Struct cache_plan whose done() is to be called */
	struct list planned;
	unsigned nstarting; /* requests that are being given to providers */
	bool stopping;
	bool at_once; /* set once: see jobs_enter_serving() */
};

void jobs_init(struct cache *c);
void jobs_release(struct cache *c);

/* Take the lock, and initialise an empty list of jobs. */
void jobs_enter(struct cache *c, struct after *a);
/* Like jobs_enter(), for the thread of a reader that waits for an answer. */
void jobs_enter_serving(struct cache *c, struct after *a);
/* Start the requests that can be started, release the lock, and do the jobs. */
void jobs_run(struct cache *c, struct after *a);

/* Take or release the lock without doing jobs: to read state, or around code
 * that must not run with the lock held. */
void jobs_lock(struct cache *c);
void jobs_unlock(struct cache *c);

/* The functions below assert that the lock is held. Have jobs_run() tell the
 * owner of a plan that the plan has ended. */
void jobs_add_planned(struct cache *c, struct list *link);
/* Have jobs_run() give a request to its provider. Until then the request can be
 * neither answered nor given up. */
void jobs_add_start(struct cache *c, struct after *a, struct list *link);
bool jobs_is_starting(const struct cache *c);
void jobs_stop(struct cache *c);
bool jobs_is_stopping(const struct cache *c);
/* Wait for jobs_wake(). It is called when the last publication has ended, the
 * last request has been given to its provider, or no request is in flight any
 * more. */
void jobs_wait(struct cache *c);
/* Returns false on a time-out */
bool jobs_wait_until(struct cache *c, uint64_t until_ns);
void jobs_wake(struct cache *c);

#endif
