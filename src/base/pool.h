/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads for calls that can block: threads are started when a job
 * finds none idle, up to a limit, so that a few that hang hold up nobody.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct pool;

/* Embedded in its owner, who keeps it until run() is called. */
struct pool_job {
	void (*run)(struct pool_job *job); /* may free the job */
	struct list node;		   /* private: lock of the pool */
};

/* Start the first thread; -errno. */
int pool_new(struct pool **out, unsigned max_threads);

/*
 * Run the job on a thread of the pool, in order of submission; but the first
 * that a running job submits follows that one on its thread. Any thread.
 */
void pool_submit(struct pool *p, struct pool_job *job);

/* CPU time of its threads so far. */
uint64_t pool_cpu_ns(struct pool *p);

/*
 * Run what is queued, stop the threads and free the pool. If a thread does not
 * end within wait_ns, the pool is left as it is and false returned: whatever
 * its jobs touch has to stay as well. NULL is allowed.
 */
bool pool_free(struct pool *p, uint64_t wait_ns);

#endif
