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
		*pool;		/* set once: stands in for the ring, or NULL */
	struct io_uring ring;	/* ring thread */
	unsigned depth;		/* set once */
	unsigned in_flight;	/* ring thread: ops that the kernel has */
	bool wake_armed;	/* ring thread: the eventfd's read is there */
	uint64_t wake_value;	/* written by the kernel while wake_armed */
	int wake_fd;		/* set once; any thread writes */
	pthread_t thread;	/* set once */
	pthread_mutex_t lock;	/* rank: a leaf */
	pthread_cond_t ended_c; /* `ended` was set */
	struct list queue;	/* lock */
	struct list cancels;	/* lock: ops in flight */
	bool woken;		/* lock: an eventfd write is on its way */
	/* The number of threads that are about to write to wake_fd. Incremented
	 * with the lock, decremented (release) without; uring_free() waits for
	 * 0 (acquire). */
	_Atomic unsigned wakers;
	bool stop, ended; /* lock */
};

/* -- uring_ring.c: the ring and its thread --------------------------------- */

/* Returns -errno if io_uring is not available. */
int ring_start(struct uring *u);
/* Returns false if the thread has not seen the last completion within
 * `wait_ns`. The thread is left behind then. */
bool ring_stop(struct uring *u, uint64_t wait_ns);

/* Requires the lock; an operation or a cancel was queued. Returns true if the
 * caller must call ring_wake() after releasing the lock. */
bool ring_must_wake(struct uring *u);
/* Wake the ring's thread. The ring may be freed from then on, so the caller
 * must not use it afterwards. */
void ring_wake(struct uring *u);

#endif
