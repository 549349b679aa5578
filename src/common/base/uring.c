/* SPDX-License-Identifier: MIT */
/* Asynchronous file operations. Any thread may start them. The ring of
 * uring_ring.c runs them or, without a ring, a thread pool with one job for
 * each operation. */
#include "common/base/magic.h"
#include "common/base/uring_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/feature.h"
#include "common/base/lock.h"

/* -- The threads that stand in ------------------------------------------- */

static int open_plainly(const struct uring_op *op)
{
	int fd;

	if (op->flags & O_NOFOLLOW)
		return beneath_open(op->fd, op->path, op->flags);
	fd = openat(op->fd, op->path, op->flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int uring_statx_now(int fd, struct statx *stx)
{
	return statx(fd, "", URING_STATX_FLAGS, URING_STATX_MASK, stx) ? -errno
								       : 0;
}

/* Run the operation as a blocking call. Returns the result that a ring would
 * return. */
static int run_plainly(struct uring_op *op)
{
	ssize_t n;

	switch (op->kind) {
	case URING_OPEN:
		return open_plainly(op);
	case URING_READ:
		n = pread(op->fd, op->buf, op->len, (off_t)op->off);
		return n < 0 ? -errno : (int)n;
	case URING_STATX:
		return uring_statx_now(op->fd, op->buf);
	case URING_CLOSE:
		return close(op->fd) ? -errno : 0;
	}
	return -EINVAL;
}

static void run_job(struct thread_job *job)
{
	struct uring_op *op =
		OBJECT(uring_op, CONTAINER_OF(job, struct uring_op, job));
	int res = -ECANCELED;

	if (op->kind == URING_CLOSE ||
		!atomic_load_explicit(&op->cancelled, memory_order_relaxed))
		res = run_plainly(op);
	op->done(op, res);
}

/* -- Both ------------------------------------------------------------------ */

/* Use a ring if `depth` is not 0 and a ring is available. */
static int make(struct uring **out, unsigned depth, unsigned threads)
{
	struct uring *u = calloc(1, sizeof(*u));
	int rc = -ENOSYS;

	if (!u)
		return -ENOMEM;
	MAGIC_BEGIN(u, uring);
	u->depth = depth;
	list_init(&u->queue);
	list_init(&u->cancels);
	lock_init(&u->lock, RANK_URING);
	cond_init(&u->ended_c);
	if (depth > 0 && feature_enabled("io_uring"))
		rc = ring_start(u);
	if (rc)
		rc = thread_pool_new(&u->pool, threads);
	if (rc) {
		pthread_cond_destroy(&u->ended_c);
		pthread_mutex_destroy(&u->lock);
		free(u);
		return rc;
	}
	*out = u;
	return 0;
}

int uring_new(struct uring **out, unsigned depth, unsigned threads)
{
	return make(out, depth, threads);
}

int uring_new_threads(struct uring **out, unsigned threads)
{
	return make(out, 0, threads);
}

struct thread_pool *uring_pool(struct uring *u)
{
	return u->pool;
}

static void uring_start(struct uring *u, struct uring_op *op)
{
	bool wakes;

	MAGIC_BEGIN(op, uring_op);
	op->ring = u;
	if (u->pool) {
		thread_job_init(&op->job, run_job);
		thread_pool_submit(u->pool, &op->job);
		return;
	}
	list_init(&op->cancel);
	pthread_mutex_lock(&u->lock);
	list_add_tail(&u->queue, &op->node);
	wakes = ring_must_wake(u);
	pthread_mutex_unlock(&u->lock);
	if (wakes)
		ring_wake(u);
}

void uring_open(struct uring *u, struct uring_op *op, int dir_fd,
	const char *path, int flags)
{
	memset(&op->how, 0, sizeof(op->how));
	op->how.flags = (uint64_t)(flags | O_CLOEXEC);
	op->how.resolve = RESOLVE_NO_XDEV;
	if (flags & O_NOFOLLOW)
		op->how.resolve |= RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			RESOLVE_NO_MAGICLINKS;
	op->kind = URING_OPEN;
	op->fd = dir_fd;
	op->path = path;
	op->flags = flags;
	uring_start(u, op);
}

void uring_read(struct uring *u, struct uring_op *op, int fd, void *buf,
	size_t len, uint64_t off)
{
	op->kind = URING_READ;
	op->fd = fd;
	op->buf = buf;
	op->len = len;
	op->off = off;
	uring_start(u, op);
}

void uring_statx(
	struct uring *u, struct uring_op *op, int fd, struct statx *stx)
{
	op->kind = URING_STATX;
	op->fd = fd;
	op->buf = stx;
	uring_start(u, op);
}

void uring_close(struct uring *u, struct uring_op *op, int fd)
{
	op->kind = URING_CLOSE;
	op->fd = fd;
	uring_start(u, op);
}

void uring_cancel(struct uring *u, struct uring_op *op)
{
	bool wakes;

	atomic_store_explicit(&op->cancelled, true, memory_order_relaxed);
	if (u->pool)
		return;
	pthread_mutex_lock(&u->lock);
	if (op->in_flight && op->kind != URING_CLOSE && list_empty(&op->cancel))
		list_add_tail(&u->cancels, &op->cancel);
	wakes = ring_must_wake(u);
	pthread_mutex_unlock(&u->lock);
	if (wakes)
		ring_wake(u);
}

uint64_t uring_cpu_ns(struct uring *u)
{
	return u->pool ? thread_pool_cpu_ns(u->pool)
		       : clock_cpu_of_ns(u->thread);
}

const pthread_mutex_t *uring_lock(const struct uring *u)
{
	return &u->lock;
}

bool uring_free(struct uring *u, uint64_t wait_ns)
{
	if (!u)
		return true;
	if (u->pool ? !thread_pool_free(u->pool, wait_ns)
		    : !ring_stop(u, wait_ns))
		return false;
	pthread_cond_destroy(&u->ended_c);
	pthread_mutex_destroy(&u->lock);
	MAGIC_END(u);
	free(u);
	return true;
}
