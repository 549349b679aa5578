/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous file operations: one thread that owns an io_uring, or a thread
 * pool with the plain system calls where io_uring is forbidden or disabled. No
 * other part includes liburing. Any thread starts operations; done() runs on a
 * thread of the ring, once an operation, and must not block.
 */
#ifndef BASE_URING_H
#define BASE_URING_H

#include <pthread.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/base/magic.h"
#include "common/base/thread_pool.h"

struct uring;
struct statx;

enum uring_kind {
	URING_OPEN,
	URING_READ,
	URING_STATX,
	URING_CLOSE,
};

/*
 * An operation, embedded in its owner. The owner keeps it and the memory it
 * names until done(). It may be reused from then on, also inside done().
 */
struct uring_op {
	uint32_t magic;
	/* res: the result of the system call, or -errno */
	void (*done)(struct uring_op *op, int res);
	/* set by the starter: a read of a file that the kernel may read in the
	 * ring's thread, even if that takes long */
	bool blocking;
	/* All private. */
	enum uring_kind kind; /* set by the starter, as are its arguments */
	int fd, flags;
	const char *path;
	void *buf;
	size_t len;
	uint64_t off;
	struct uring *ring;
	struct list node;	/* ring lock: queue */
	struct list cancel;	/* ring lock: to be cancelled */
	bool in_flight;		/* ring lock: the kernel has it */
	_Atomic bool cancelled; /* relaxed: only saves work */
	struct thread_job job;
	struct open_how how;
};

/*
 * Give the kernel at most `depth` operations at a time. Without a ring,
 * `threads` threads take its place. Returns -errno.
 */
int uring_new(struct uring **out, unsigned depth, unsigned threads);

/*
 * Use only threads, for files whose calls all block. An operation that is
 * started in done() of another follows it on the same thread, where a ring
 * would hand both to kernel threads and back. Returns -errno.
 */
int uring_new_threads(struct uring **out, unsigned threads);

/* The thread pool that takes the ring's place, for other jobs that an operation
 * needs; NULL if there is a ring. */
struct thread_pool *uring_pool(struct uring *u);

/* Open a file; `res` in done() is its descriptor. With O_NOFOLLOW this works
 * like beneath_open(), but does not check the path. Without O_NOFOLLOW it works
 * like openat() and follows symbolic links anywhere. */
void uring_open(struct uring *u, struct uring_op *op, int dir_fd,
	const char *path, int flags);

void uring_read(struct uring *u, struct uring_op *op, int fd, void *buf,
	size_t len, uint64_t off);

/* Get type, size and mtime of an open file. If a server has the file, it is
 * asked. */
void uring_statx(
	struct uring *u, struct uring_op *op, int fd, struct statx *stx);

/* Closing is asynchronous because it can wait for a file server. */
void uring_close(struct uring *u, struct uring_op *op, int fd);

/*
 * Ask for an operation to end soon, with -ECANCELED or its own result. This is
 * a hint: a call that hangs in the kernel is not interrupted. The op must not
 * have been freed.
 */
void uring_cancel(struct uring *u, struct uring_op *op);

/*
 * CPU time so far of the ring's thread, or of the threads in its place. It does
 * not include kernel threads that work for the ring. Call it before
 * uring_free().
 */
uint64_t uring_cpu_ns(struct uring *u);

/* The lock, for benchmarks that measure its use. */
const pthread_mutex_t *uring_lock(const struct uring *u);

/*
 * End all operations and free the ring. If the kernel still holds operations
 * after wait_ns, returns false, and never frees them and the ring.
 */
bool uring_free(struct uring *u, uint64_t wait_ns);

#endif
