/* SPDX-License-Identifier: MIT */
/*
 * The posix origin: a directory of any mounted file system. This file makes
 * and frees it; posix_read.c reads, posix_meta.c looks at names. The source is
 * opened once and every path is resolved beneath that descriptor, links never
 * followed: nothing outside it can be named.
 */
#include "origin/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/feature.h"
#include "base/timer.h"

#define RING_DEPTH 512
#define READ_THREADS 32
/* Room for some hung calls; see retry for what bounds their number. */
#define META_THREADS 32

int posix_judge(struct posix *p, int code)
{
	struct stat st;

	if (stat(p->dir, &st) || st.st_dev != p->root_dev ||
		st.st_ino != p->root_ino)
		return -EIO;
	return code;
}

static void release(struct posix *p)
{
	posix_free_buffers(p);
	if (p->root_fd >= 0)
		(void)close(p->root_fd); /* O_PATH: nothing to fail */
	pthread_mutex_destroy(&p->lock);
	free(p->dir);
	free(p);
}

static void posix_free(struct origin *o)
{
	struct posix *p = (struct posix *)(void *)o;
	uint64_t until_ns = clock_now_ns() + NS_PER_S;
	uint64_t now_ns;
	bool ended;

	/*
	 * From here down, each may have left the next something to do, never
	 * the reverse. No timer is set, but one may be firing.
	 */
	timers_free(p->timers);
	ended = uring_free(p->ring, NS_PER_S);
	late_free(p->late);
	now_ns = clock_now_ns();
	if (!pool_free(p->pool, now_ns < until_ns ? until_ns - now_ns : 0))
		ended = false;
	if (ended)
		release(p);
}

static const struct origin_ops posix_ops = {
	.name = "posix",
	.file_new = posix_file_new,
	.file_free = posix_file_free,
	.read = posix_read,
	.stat = posix_stat,
	.list = posix_list,
	.abandon = posix_abandon,
	.free = posix_free,
};

static int open_root(struct posix *p, const char *dir, struct error *err)
{
	struct stat st;

	p->root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root_fd < 0 && errno == ENOENT)
		return error_set(err, -ENOENT,
			"cannot open '%s': %m; is the storage mounted?", dir);
	if (p->root_fd < 0)
		return error_set(err, -errno, "cannot open '%s': %m", dir);
	/* O_PATH needs no permission; listing will. */
	if (faccessat(p->root_fd, ".", R_OK | X_OK, AT_EACCESS))
		return error_set(err, -errno,
			"cannot read '%s': %m; it needs r and x for this user",
			dir);
	p->dir = realpath(dir, NULL);
	if (!p->dir || fstat(p->root_fd, &st))
		return error_set(err, -errno, "cannot look at '%s': %m", dir);
	p->root_dev = st.st_dev;
	p->root_ino = st.st_ino;
	return 0;
}

static int start_threads(struct posix *p, struct error *err)
{
	int rc = late_new(&p->late);

	if (!rc)
		rc = timers_new(&p->timers);
	if (!rc)
		rc = pool_new(&p->pool, META_THREADS);
	if (!rc)
		rc = uring_new(&p->ring, RING_DEPTH, READ_THREADS);
	if (rc)
		return error_set(err, rc,
			"cannot start threads: %m; see ulimit -u and -v");
	return 0;
}

int origin_posix_new(struct origin **out, const char *dir, struct error *err)
{
	struct posix *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "cannot open '%s': %m", dir);
	p->base.ops = &posix_ops;
	p->root_fd = -1;
	atomic_init(&p->direct, feature_enabled("direct_io"));
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->waiting);
	list_init(&p->spare);
	rc = open_root(p, dir, err);
	if (!rc)
		rc = start_threads(p, err);
	if (rc) {
		posix_free(&p->base);
		return rc;
	}
	*out = &p->base;
	return 0;
}
