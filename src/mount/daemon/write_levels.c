/* SPDX-License-Identifier: MIT */
/*
 * Finds the levels of the files of an index. Some threads take files in their
 * order, and each reads one file at a time. The caller's thread shows progress.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

/* So many requests in flight are enough for a remote source, and do not need
 * much memory. */
#define LEVELS_THREADS 16u
#define LEVELS_TELL_NS (200 * NS_PER_MS)
/* A larger file is shown whole, because loaders do not decode such large
 * images. */
#define LEVELS_FILE_MAX_BYTES ((uint64_t)64 << 20)

struct levels_job {
	struct origin *origin;
	struct index_row *row;
	size_t n;
	_Atomic size_t next;
	_Atomic uint64_t files, bytes;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned running; /* guarded by the lock: number of threads */
	/* Guarded by the lock: the first failure. */
	int status;
	const char *path;
};

/* A read for whose end a thread waits. */
struct level_read {
	struct origin_read read;
	unsigned char *to;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done; /* guarded by the lock, like status */
	int status;
};

static void level_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct level_read *q = CONTAINER_OF(r, struct level_read, read);

	memcpy(q->to + off, bytes, len);
}

static void level_done(struct origin_request *req, int status)
{
	struct level_read *q = CONTAINER_OF(req, struct level_read, read.req);

	LOCK_SCOPE(&q->lock);
	q->status = status;
	q->done = true;
	pthread_cond_signal(&q->cond);
}

/* Read [off, off + len) of the file to the same offsets of `to`. */
static int level_read(const struct levels_job *j, struct origin_file *file,
	struct file_version version, uint64_t off, size_t len,
	unsigned char *to)
{
	struct level_read q = {
		.read = {.req.done = level_done,
			.file = file,
			.want = version,
			.off = off,
			.len = len,
			.data = level_data},
		.to = to,
	};

	lock_init(&q.lock, RANK_LATE);
	cond_init(&q.cond);
	origin_read(j->origin, &q.read);
	pthread_mutex_lock(&q.lock);
	while (!q.done)
		pthread_cond_wait(&q.cond, &q.lock);
	pthread_mutex_unlock(&q.lock);
	pthread_cond_destroy(&q.cond);
	pthread_mutex_destroy(&q.lock);
	return q.status;
}

/* Read the whole file if it is a JPEG, otherwise only its first piece. */
static int level_read_file(struct levels_job *j, struct index_row *row,
	struct origin_file *file, unsigned char *to)
{
	uint64_t size = row->version.size_bytes, off = 0;

	while (off < size && (off == 0 || jpeg_begins(to, off))) {
		size_t len = size - off < ORIGIN_READ_MAX_BYTES
			? (size_t)(size - off)
			: ORIGIN_READ_MAX_BYTES;
		int rc = level_read(j, file, row->version, off, len, to);

		if (rc < 0)
			return rc;
		off += len;
		atomic_fetch_add(&j->bytes, len);
	}
	if (off == size)
		jpeg_levels(to, (size_t)size, row->level);
	return 0;
}

static int level_find(struct levels_job *j, struct index_row *row)
{
	uint64_t size = row->version.size_bytes;
	CLEANUP_FREE unsigned char *to = NULL;
	struct origin_file *file;
	int rc;

	if (size == 0 || size > LEVELS_FILE_MAX_BYTES)
		return 0;
	to = malloc((size_t)size);
	file = origin_file_new(j->origin, row->path);
	rc = to && file ? level_read_file(j, row, file, to) : -ENOMEM;
	if (file)
		origin_file_free(j->origin, file);
	return rc;
}

static void level_failed(
	struct levels_job *j, const struct index_row *row, int status)
{
	LOCK_SCOPE(&j->lock);
	if (j->status == 0) {
		j->status = status;
		j->path = row->path;
	}
	atomic_store(&j->next, j->n);
}

static void *levels_main(void *arg)
{
	struct levels_job *j = arg;
	size_t i;

	while ((i = atomic_fetch_add(&j->next, 1)) < j->n) {
		int rc = level_find(j, &j->row[i]);

		if (rc < 0)
			level_failed(j, &j->row[i], rc);
		atomic_fetch_add(&j->files, 1);
	}
	LOCK_SCOPE(&j->lock);
	j->running--;
	pthread_cond_signal(&j->ended);
	return NULL;
}

static int levels_start(struct levels_job *j, struct error *err)
{
	for (unsigned i = 0; i < LEVELS_THREADS && i < j->n; i++) {
		pthread_t thread;
		int rc;

		pthread_mutex_lock(&j->lock);
		rc = pthread_create(&thread, NULL, levels_main, j);
		j->running += rc == 0;
		pthread_mutex_unlock(&j->lock);
		if (rc == 0)
			(void)pthread_detach(thread); /* cannot fail */
		else if (i == 0)
			return error_set(err, -rc, "cannot start a thread: %m");
	}
	return 0;
}

int index_levels(struct origin *origin, struct index_row *rows, size_t n,
	void (*tell)(void *arg, uint64_t files, uint64_t bytes), void *arg,
	struct error *err)
{
	struct levels_job j = {.origin = origin, .row = rows, .n = n};
	int rc;

	lock_init(&j.lock, RANK_LEVELS);
	cond_init(&j.ended);
	rc = levels_start(&j, err);
	pthread_mutex_lock(&j.lock);
	while (j.running > 0) {
		(void)cond_wait_until(
			&j.ended, &j.lock, clock_now_ns() + LEVELS_TELL_NS);
		tell(arg, atomic_load(&j.files), atomic_load(&j.bytes));
	}
	pthread_mutex_unlock(&j.lock);
	tell(arg, atomic_load(&j.files), atomic_load(&j.bytes));
	pthread_cond_destroy(&j.ended);
	pthread_mutex_destroy(&j.lock);
	if (rc == 0 && j.status < 0)
		rc = error_set(err, j.status, "cannot read '%s': %m%s", j.path,
			j.status == -ESTALE ? "; it has changed: try again"
					    : "");
	return rc;
}
