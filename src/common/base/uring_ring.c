/* SPDX-License-Identifier: MIT */
/*
 * A ring of operations and its thread. Starters put an op on a queue under the
 * lock and wake the thread through an eventfd, for which the ring always has a
 * read in flight; only the thread touches the ring. An op:
 *
 *   idle --start--> queued --taken--> in flight --completion--> idle, done()
 *                     | cancelled                                  ^
 *                     +--------------------------------------------+
 */
#include "common/base/magic.h"
#include "common/base/uring_impl.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

#define SQ_ENTRIES 256
/* Limit for the kernel's worker threads. Each hung read holds one, and the
 * kernel's default is low. */
#define WORKERS_MAX 256

/* -- Operations ------------------------------------------------------------ */

/* Returns a free entry of the submission queue; NULL if there is none now, so
 * that the caller has to try again later. */
static struct io_uring_sqe *get_sqe(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe) {
		/* if this fails, the next line returns NULL */
		(void)io_uring_submit(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	return sqe;
}

/*
 * Prepare an operation. If a name is in the kernel's cache, the ring's thread
 * does the rest of an open at once, which saves two thread switches. But on
 * FUSE that thread would wait for the server. So an open that crosses to
 * another file system, which first ends with -EXDEV, goes to the kernel's
 * threads.
 */
static void ring_prepare(struct io_uring_sqe *sqe, struct uring_op *op)
{
	switch (op->kind) {
	case URING_OPEN:
		io_uring_prep_openat2(sqe, op->fd, op->path, &op->how);
		io_uring_sqe_set_flags(sqe,
			op->how.resolve & RESOLVE_NO_XDEV ? 0 : IOSQE_ASYNC);
		break;
	case URING_READ:
		io_uring_prep_read(
			sqe, op->fd, op->buf, (unsigned)op->len, op->off);
		io_uring_sqe_set_flags(sqe, op->blocking ? IOSQE_ASYNC : 0);
		break;
	case URING_STATX:
		io_uring_prep_statx(sqe, op->fd, "", URING_STATX_FLAGS,
			URING_STATX_MASK, op->buf);
		break;
	case URING_CLOSE:
		io_uring_prep_close(sqe, op->fd);
		break;
	}
	io_uring_sqe_set_data(sqe, op);
}

/* Have the kernel read the eventfd, so that a write to it wakes the thread.
 * Like a cancel, this read has no struct uring_op. */
static void arm_wake(struct uring *u)
{
	struct io_uring_sqe *sqe;

	if (u->wake_armed)
		return;
	sqe = get_sqe(u);
	if (!sqe)
		return;
	io_uring_prep_read(
		sqe, u->wake_fd, &u->wake_value, sizeof(u->wake_value), 0);
	io_uring_sqe_set_data(sqe, &u->wake_value);
	u->wake_armed = true;
}

static void submit_cancels(struct uring *u)
{
	ASSERT_HELD(&u->lock);
	while (!list_empty(&u->cancels)) {
		struct uring_op *op =
			LIST_FIRST(&u->cancels, struct uring_op, cancel);
		struct io_uring_sqe *sqe = get_sqe(u);

		if (!sqe)
			return;
		list_del(&op->cancel);
		io_uring_prep_cancel(sqe, op, 0);
		io_uring_sqe_set_data(sqe, NULL);
	}
}

/* Move operations from the queue to the kernel, and cancelled ones to
 * `dropped`. Returns true when the ring has to end. Called before every wait,
 * so an operation that done() starts needs no wake-up. */
static bool take_queued(struct uring *u, struct list *dropped)
{
	LOCK_SCOPE(&u->lock);

	u->woken = false;
	submit_cancels(u);
	LIST_FOREACH_SAFE(pos, tmp, &u->queue) {
		struct uring_op *op = CONTAINER_OF(pos, struct uring_op, node);
		struct io_uring_sqe *sqe;

		if (u->stop ||
			atomic_load_explicit(
				&op->cancelled, memory_order_relaxed)) {
			list_del(&op->node);
			list_add_tail(dropped, &op->node);
			continue;
		}
		if (u->in_flight >= u->depth)
			continue;
		sqe = get_sqe(u);
		if (!sqe)
			break;
		list_del(&op->node);
		ring_prepare(sqe, op);
		op->in_flight = true;
		u->in_flight++;
	}
	if (!u->stop)
		arm_wake(u);
	return u->stop && u->in_flight == 0 && !u->wake_armed &&
		list_empty(dropped);
}

/* Is the result -EXDEV, so that a kernel thread must open the file? If so,
 * queues the operation again. */
static bool opens_elsewhere(struct uring *u, struct uring_op *op, int res)
{
	if (op->kind != URING_OPEN || res != -EXDEV ||
		!(op->how.resolve & RESOLVE_NO_XDEV))
		return false;
	op->how.resolve &= ~(uint64_t)RESOLVE_NO_XDEV;
	list_init(&op->cancel);
	list_add_tail(&u->queue, &op->node);
	return true;
}

static void complete(struct uring *u, void *data, int res)
{
	struct uring_op *op;
	bool again;

	if (!data)
		return;
	if (data == &u->wake_value) {
		u->wake_armed = false;
		return;
	}
	op = OBJECT(uring_op, data);
	u->in_flight--;
	pthread_mutex_lock(&u->lock);
	op->in_flight = false;
	list_del(&op->cancel);
	again = opens_elsewhere(u, op, res);
	pthread_mutex_unlock(&u->lock);
	if (!again)
		op->done(op, res);
}

static void ring_reap(struct uring *u)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
		void *data = io_uring_cqe_get_data(cqe);
		int res = cqe->res;

		io_uring_cqe_seen(&u->ring, cqe);
		complete(u, data, res);
	}
}

/* Complete an operation that does not reach the kernel. If it is a close, the
 * descriptor is closed all the same. */
static void drop_op(struct uring_op *op)
{
	list_del(&op->node);
	if (op->kind == URING_CLOSE)
		/* cannot lose data: the file was only read */
		(void)close(op->fd);
	op->done(op, -ECANCELED);
}

/* -- The thread ------------------------------------------------------------ */

static void *ring_thread(void *arg)
{
	struct uring *u = OBJECT(uring, arg);
	struct list dropped;

	list_init(&dropped);
	while (!take_queued(u, &dropped)) {
		int rc;

		if (!list_empty(&dropped)) {
			drop_op(LIST_FIRST(&dropped, struct uring_op, node));
			continue;
		}
		rc = io_uring_submit_and_wait(&u->ring, 1);
		if (rc == -EAGAIN || rc == -ENOMEM)
			(void)poll(NULL, 0, 1); /* the kernel lacks resources */
		ring_reap(u);
	}
	pthread_mutex_lock(&u->lock);
	u->ended = true;
	pthread_cond_signal(&u->ended_c);
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

bool ring_must_wake(struct uring *u)
{
	ASSERT_HELD(&u->lock);
	if (u->woken || pthread_equal(pthread_self(), u->thread))
		return false;
	u->woken = true;
	atomic_fetch_add_explicit(&u->wakers, 1, memory_order_relaxed);
	return true;
}

void ring_wake(struct uring *u)
{
	uint64_t one = 1;
	ssize_t rc;

	do
		rc = write(u->wake_fd, &one, sizeof(one));
	while (rc < 0 && errno == EINTR);
	atomic_fetch_sub_explicit(&u->wakers, 1, memory_order_release);
}

/* -- Start and stop -------------------------------------------------------- */

static bool ops_supported(struct io_uring *ring)
{
	static const int needed[] = {IORING_OP_OPENAT2, IORING_OP_READ,
		IORING_OP_STATX, IORING_OP_CLOSE, IORING_OP_ASYNC_CANCEL};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;

	for (size_t i = 0; all && i < sizeof(needed) / sizeof(*needed); i++)
		all = io_uring_opcode_supported(probe, needed[i]);
	io_uring_free_probe(probe);
	return all;
}

static int ring_init(struct uring *u)
{
	unsigned workers[2] = {WORKERS_MAX, WORKERS_MAX};
	int rc = io_uring_queue_init(SQ_ENTRIES, &u->ring, 0);

	if (rc)
		return rc;
	if (!ops_supported(&u->ring)) {
		io_uring_queue_exit(&u->ring);
		return -ENOSYS;
	}
	/* If this fails, the kernel is too old to set the limit, and its
	 * default stays. */
	(void)io_uring_register_iowq_max_workers(&u->ring, workers);
	u->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (u->wake_fd < 0) {
		rc = -errno;
		io_uring_queue_exit(&u->ring);
	}
	return rc;
}

int ring_start(struct uring *u)
{
	int rc = ring_init(u);

	if (rc)
		return rc;
	rc = -pthread_create(&u->thread, NULL, ring_thread, u);
	if (rc) {
		/* cannot lose data: an eventfd has none */
		(void)close(u->wake_fd);
		io_uring_queue_exit(&u->ring);
	}
	return rc;
}

/* Wait until no thread is about to write to the eventfd: an operation may end
 * before the thread that has started it has written its wake-up. */
static void await_wakers(struct uring *u)
{
	while (atomic_load_explicit(&u->wakers, memory_order_acquire) > 0)
		(void)sched_yield();
}

bool ring_stop(struct uring *u, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	bool ended;

	pthread_mutex_lock(&u->lock);
	u->stop = true;
	atomic_fetch_add_explicit(&u->wakers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&u->lock);
	ring_wake(u);
	pthread_mutex_lock(&u->lock);
	while (!u->ended)
		if (!cond_wait_until(&u->ended_c, &u->lock, until_ns))
			break;
	ended = u->ended;
	pthread_mutex_unlock(&u->lock);
	if (!ended) {
		pthread_detach(u->thread);
		return false;
	}
	pthread_join(u->thread, NULL);
	await_wakers(u);
	io_uring_queue_exit(&u->ring);
	(void)close(u->wake_fd); /* cannot lose data: an eventfd has none */
	return true;
}
