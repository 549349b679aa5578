/* SPDX-License-Identifier: MIT */
/* A pool of threads for calls that can block. If no thread is idle, a job
 * starts another one, up to a limit, so that a few hung jobs do not delay the
 * others. */
#ifndef BASE_THREAD_POOL_H
#define BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/base/magic.h"

struct thread_pool;

/* Embedded in a struct of its owner, which must exist until run() is called.
 * All members are private. */
struct thread_job {
	uint32_t magic;
	void (*run)(struct thread_job *job);
	struct list node; /* guarded by the lock of the pool */
};

/* Initialise a job. run() may free the job. */
static inline void thread_job_init(
	struct thread_job *job, void (*run)(struct thread_job *job))
{
	MAGIC_BEGIN(job, thread_job);
	job->run = run;
}

/* Create a pool and start its first thread. Returns 0 or -errno. */
int thread_pool_new(struct thread_pool **out, unsigned max_threads);

/*
 * Run the job on a thread of the pool, in order of submission. The first job
 * that a running job submits is an exception: it runs next on the same thread.
 * Any thread may call.
 */
void thread_pool_submit(struct thread_pool *p, struct thread_job *job);

/* Returns the CPU time that the pool's threads have used so far. */
uint64_t thread_pool_cpu_ns(struct thread_pool *p);

/* Run the queued jobs, stop the threads and free the pool. If a thread does not
 * end within wait_ns, returns false and frees nothing; then everything that its
 * jobs use must also stay. NULL is allowed. */
bool thread_pool_free(struct thread_pool *p, uint64_t wait_ns);

#endif
