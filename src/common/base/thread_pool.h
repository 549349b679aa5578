/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads for calls that can block. A thread is started when a job
 * finds none idle, up to a limit, so a few hung jobs do not delay the others.
 */
#ifndef BASE_THREAD_POOL_H
#define BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"

struct pool;

/* Embedded in its owner, which keeps it until run() is called. All private. */
struct pool_job {
	void (*run)(struct pool_job *job);
	struct list node; /* lock of the pool */
};

/* run() may free the job. */
static inline void pool_job_init(
	struct pool_job *job, void (*run)(struct pool_job *job))
{
	job->run = run;
}

/* Start the first thread; -errno. */
int pool_new(struct pool **out, unsigned max_threads);

/*
 * Run the job on a thread of the pool, in order of submission. The first job
 * that a running job submits is an exception: it runs next on the same thread.
 * Any thread may call.
 */
void pool_submit(struct pool *p, struct pool_job *job);

/* CPU time of the pool's threads so far. */
uint64_t pool_cpu_ns(struct pool *p);

/*
 * Run the queued jobs, stop the threads and free the pool. If a thread does not
 * end within wait_ns, returns false and leaves the pool as it is; then
 * everything its jobs touch must stay, too. NULL is allowed.
 */
bool pool_free(struct pool *p, uint64_t wait_ns);

#endif
