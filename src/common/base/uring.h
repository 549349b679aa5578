/* SPDX-License-Identifier: MIT */
/* Asynchronous file operations: one thread that owns an io_uring or, where
 * io_uring is forbidden or disabled, a thread pool with the plain system calls.
 * No other part includes liburing. Any thread starts operations. For each of
 * them, done() runs once on a thread of the ring, and must not block. */
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

/* An operation, embedded in a struct of its owner. The owner must not free it
 * or the memory that it names before done(). From then on, and even in done(),
 * the owner may use it for another operation. */
struct uring_op {
	uint32_t magic;
	/* `res` is the result of the system call, or -errno */
	void (*done)(struct uring_op *op, int res);
	/* The starter sets this for a read of a file that the kernel may read
	 * in the ring's thread, even if that takes long */
	bool blocking;
	/* All members below are private. */
	enum uring_kind kind; /* the starter sets this and the arguments */
	int fd, flags;
	const char *path;
	void *buf;
	size_t len;
	uint64_t off;
	struct uring *ring;
	struct list node; /* guarded by the ring's lock: in its queue */
	/* guarded by the ring's lock: in its list of operations to cancel */
	struct list cancel;
	/* guarded by the ring's lock: the kernel has the operation */
	bool in_flight;
	_Atomic bool cancelled; /* relaxed, because it only saves work */
	struct thread_job job;
	struct open_how how;
};

/* Create a ring. The kernel gets at most `depth` operations at a time. If there
 * is no io_uring, `threads` threads take its place. Returns 0 or -errno. */
int uring_new(struct uring **out, unsigned depth, unsigned threads);

/* Use only threads, for files whose calls all block. If done() starts another
 * operation, it runs next on the same thread, where a ring would pass both to
 * kernel threads and back. Returns 0 or -errno. */
int uring_new_threads(struct uring **out, unsigned threads);

/* Returns the thread pool that takes the ring's place, for other jobs of the
 * caller; NULL if there is a ring. */
struct thread_pool *uring_pool(struct uring *u);

/* Open a file; `res` in done() is its descriptor. With O_NOFOLLOW this works
 * like beneath_open(), but does not check the path. Without O_NOFOLLOW it works
 * like openat() and follows symbolic links anywhere. */
void uring_open(struct uring *u, struct uring_op *op, int dir_fd,
	const char *path, int flags);

void uring_read(struct uring *u, struct uring_op *op, int fd, void *buf,
	size_t len, uint64_t off);

/* Get type, size and mtime of an open file. A network file system asks its
 * server. */
void uring_statx(
	struct uring *u, struct uring_op *op, int fd, struct statx *stx);

/* The same on the caller's thread. Returns 0 or -errno. */
int uring_statx_now(int fd, struct statx *stx);

/* Close a file. This is asynchronous because closing can wait for a file
 * server. */
void uring_close(struct uring *u, struct uring_op *op, int fd);

/* Request that an operation ends soon, with -ECANCELED or its own result. This
 * is a hint: a call that hangs in the kernel is not interrupted. The operation
 * must not have been freed. */
void uring_cancel(struct uring *u, struct uring_op *op);

/* Returns the CPU time so far of the ring's thread, or of the threads in its
 * place. It does not include kernel threads that work for the ring. Call this
 * before uring_free(). */
uint64_t uring_cpu_ns(struct uring *u);

/* Returns the lock, for benchmarks that measure how often it is taken. */
const pthread_mutex_t *uring_lock(const struct uring *u);

/* End all operations and free the ring. If the kernel still has operations
 * after wait_ns, returns false, and never frees them and the ring. */
bool uring_free(struct uring *u, uint64_t wait_ns);

#endif
