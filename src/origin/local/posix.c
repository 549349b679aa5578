/* SPDX-License-Identifier: MIT */
/*
 * The posix origin: a directory of any mounted file system. This file creates
 * and frees it; posix_read.c reads, posix_meta.c handles names. Every path is
 * resolved beneath the descriptor that posix_root.c keeps, and links are never
 * followed, so no name leads out of the directory.
 */
#include "origin/local/posix_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/feature.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/timer.h"

#define RING_DEPTH 512
#define READ_THREADS 32
/* The number of threads for a file system on which each call may wait for a
 * server. */
#define FAR_THREADS 256
/* The length of a request. It is long enough for the full rate of a disk. It is
 * so short that other readers wait little, and that a reader of a slow origin
 * gets its first bytes early. */
#define REQUEST_BYTES ((size_t)256 << 10)
#define REQUESTS 64
#define CHUNK_BYTES ((uint64_t)256 << 10)
/* When the origin ends, it waits at most this long for operations. Their
 * threads continue to exist. */
#define CLOSE_NS (NS_PER_S * TIME_LIMIT_FACTOR)
/* This is enough for some calls that hang; the retry origin limits their
 * number. */
#define META_THREADS 32

static void release(struct posix *p)
{
	posix_free_buffers(p);
	posix_root_close(p);
	pthread_mutex_destroy(&p->lock);
	MAGIC_END(p);
	free(p);
}

static bool posix_free(struct origin *o)
{
	struct posix *p = OBJECT(posix, o);
	uint64_t until_ns = clock_now_ns() + CLOSE_NS;
	uint64_t now_ns;
	bool ended;

	/* Free the parts in this order, because each may leave work for those
	 * after it, but never for those before it. No timer is set, but one may
	 * be firing. */
	timers_free(p->timers);
	pthread_mutex_lock(&p->lock);
	p->closer = p->pool;
	p->ring_closes = false;
	pthread_mutex_unlock(&p->lock);
	ended = uring_free(p->ring, CLOSE_NS);
	late_free(p->late);
	now_ns = clock_now_ns();
	/* If an operation hangs in the ring, the pool must stay: the operation
	 * may later submit a job to it. */
	if (ended)
		ended = thread_pool_free(
			p->pool, now_ns < until_ns ? until_ns - now_ns : 0);
	if (ended)
		release(p);
	return ended;
}

static void posix_start(struct origin *o, struct origin_request *q)
{
	struct posix *p = OBJECT(posix, o);

	if (q->op == ORIGIN_READ)
		posix_read(p, origin_read_of(q));
	else
		posix_look(p, q);
}

static const struct origin_ops posix_ops = {
	.file_new = posix_file_new,
	.file_free = posix_file_free,
	.start = posix_start,
	.read_now = posix_read_now,
	.abandon = posix_abandon,
	.free = posix_free,
};

static int start_threads(struct posix *p, struct error *err)
{
	int rc = late_new(&p->late);

	if (!rc)
		rc = timers_new(&p->timers);
	if (!rc)
		rc = thread_pool_new(&p->pool, META_THREADS);
	if (!rc && posix_root_is_far(p))
		rc = uring_new_threads(&p->ring, FAR_THREADS);
	else if (!rc)
		rc = uring_new(&p->ring, RING_DEPTH, READ_THREADS);
	if (!rc)
		p->closer = uring_pool(p->ring);
	p->ring_closes = !rc && !p->closer && p->local;
	if (!rc && !p->closer)
		p->closer = p->pool;
	if (rc)
		return error_set(err, rc,
			"cannot start threads: %m; see ulimit -u and -v");
	return 0;
}

typedef int root_open_fn(struct posix *p, const char *dir, struct error *err);

static int new_with(struct origin **out, const char *dir, root_open_fn *open_fn,
	struct error *err)
{
	static const struct origin_traits traits = {
		.request_bytes = REQUEST_BYTES,
		.depth = REQUESTS,
		.chunk_bytes = CHUNK_BYTES,
	};
	struct posix *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "cannot open '%s': %m", dir);
	MAGIC_BEGIN(p, posix);
	origin_init(&p->base, &posix_ops, &traits);
	p->root_fd = -1;
	p->direct = feature_enabled("direct_io");
	atomic_init(&p->refused, 0);
	lock_init(&p->lock, RANK_POSIX);
	list_init(&p->waiting);
	list_init(&p->spare);
	rc = open_fn(p, dir, err);
	p->local = rc == 0 && posix_root_is_local(p);
	p->in_memory = rc == 0 && posix_root_is_in_memory(p);
	if (!rc)
		rc = start_threads(p, err);
	if (rc) {
		posix_free(&p->base);
		return rc;
	}
	*out = &p->base;
	return 0;
}

int origin_posix_new(struct origin **out, const char *dir, struct error *err)
{
	return new_with(out, dir, posix_root_open, err);
}

int origin_posix_new_later(
	struct origin **out, const char *dir, struct error *err)
{
	return new_with(out, dir, posix_root_open_later, err);
}
