/* SPDX-License-Identifier: MIT */
/* The struct that uring.c and uring_ring.c share. */
#ifndef BASE_URING_IMPL_H
#define BASE_URING_IMPL_H

#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/base/magic.h"
#include "common/base/uring.h"

#define URING_STATX_MASK (STATX_TYPE | STATX_SIZE | STATX_MTIME)
#define URING_STATX_FLAGS (AT_EMPTY_PATH | AT_STATX_FORCE_SYNC)

struct uring {
	uint32_t magic;
	struct thread_pool
		*pool; /* set once: the threads in place of a ring, or NULL */
	struct io_uring ring; /* used by the ring's thread */
	unsigned depth;	      /* set once */
	/* used by the ring's thread: operations that the kernel has */
	unsigned in_flight;
	/* used by the ring's thread: the kernel has the eventfd's read */
	bool wake_armed;
	uint64_t wake_value;	/* written by the kernel while wake_armed */
	int wake_fd;		/* set once; any thread writes */
	pthread_t thread;	/* set once */
	pthread_mutex_t lock;	/* no other lock is taken while it is held */
	pthread_cond_t ended_c; /* signalled when `ended` was set */
	struct list queue;	/* guarded by lock */
	/* guarded by lock: operations in flight to cancel */
	struct list cancels;
	/* guarded by lock: a thread is about to write to the eventfd */
	bool woken;
	/* The number of threads that are about to write to wake_fd. A thread
	 * increments it with the lock held, and decrements it (release) without
	 * the lock; uring_free() waits for 0 (acquire). */
	_Atomic unsigned wakers;
	bool stop, ended; /* guarded by lock */
};

/* -- uring_ring.c: the ring and its thread --------------------------------- */

/* Start the ring and its thread. Returns 0, or -errno if io_uring is not
 * available. */
int ring_start(struct uring *u);
/* Stop the ring. Returns false if its thread has not seen the last completion
 * within `wait_ns`; then the thread continues to run. */
bool ring_stop(struct uring *u, uint64_t wait_ns);

/* Call this with the lock held when an operation or a cancel was queued.
 * Returns true if the caller must call ring_wake() after releasing the lock. */
bool ring_must_wake(struct uring *u);
/* Wake the ring's thread. After this call the caller must not use the ring,
 * which may have been freed. */
void ring_wake(struct uring *u);

#endif
