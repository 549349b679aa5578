/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous file operations: one thread that owns an io_uring, or a pool of
 * threads with the plain system calls where io_uring is forbidden or disabled.
 * Nobody else includes liburing. Any thread starts operations; done() runs on
 * a thread of the ring, once an operation, and must not block.
 */
#ifndef BASE_URING_H
#define BASE_URING_H

#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"

struct uring;
struct statx;

enum uring_kind {
	URING_OPEN,
	URING_READ,
	URING_STATX,
	URING_CLOSE,
};

/*
 * An operation, embedded in its owner, who keeps it and the memory that it
 * names until done(); it may be used again from then on, in done() too.
 */
struct uring_op {
	void (*done)(struct uring_op *op, int res); /* res: as the call's,
						       or -errno */
	bool blocking; /* set by the starter: a read of a file that the kernel
			  may read on the spot, however long that takes */
	/* All private. */
	enum uring_kind kind; /* with its arguments: set by the starter */
	int fd, flags;
	const char *path;
	void *buf;
	size_t len;
	uint64_t off;
	struct uring *ring;
	struct list node;	/* ring lock: queue */
	struct list cancel;	/* ring lock: to be cancelled */
	bool in_flight;		/* ring lock: the kernel has it */
	_Atomic bool cancelled; /* relaxed: only makes things faster */
	struct pool_job job;
	struct open_how how;
};

/*
 * At most `depth` operations are given to the kernel at a time; without a
 * ring, `threads` threads stand in. -errno.
 */
int uring_new(struct uring **out, unsigned depth, unsigned threads);

/*
 * Threads alone, for files whose calls all block: an operation that is started
 * by the done() of another follows it on the same thread, where a ring would
 * hand both over to threads of the kernel's and back. -errno.
 */
int uring_new_threads(struct uring **out, unsigned threads);

/* Those threads, for what belongs to an operation; NULL: there is a ring. */
struct pool *uring_pool(struct uring *u);

/*
 * res: a descriptor. With O_NOFOLLOW as beneath_open(), but the path is not
 * checked; without it as openat(), through symbolic links to wherever they
 * lead.
 */
void uring_open(struct uring *u, struct uring_op *op, int dir_fd,
	const char *path, int flags);

void uring_read(struct uring *u, struct uring_op *op, int fd, void *buf,
	size_t len, uint64_t off);

/* Type, size and mtime of an open file, from the server where there is one. */
void uring_statx(
	struct uring *u, struct uring_op *op, int fd, struct statx *stx);

/* Closing can wait, too, for a server that is told of it. */
void uring_close(struct uring *u, struct uring_op *op, int fd);

/*
 * Ask that an operation end soon (-ECANCELED, or its own result). A hint: one
 * that hangs in the kernel ends when it ends. The op must not have been freed.
 */
void uring_cancel(struct uring *u, struct uring_op *op);

/*
 * CPU time so far of the ring's thread, or of those that stand in for it; what
 * threads of the kernel's own do for the ring is not in it. Before
 * uring_free().
 */
uint64_t uring_cpu_ns(struct uring *u);

/*
 * End everything and free. False if the kernel still holds operations after
 * wait_ns: then they and the ring stay as they are, for ever.
 */
bool uring_free(struct uring *u, uint64_t wait_ns);

#endif
