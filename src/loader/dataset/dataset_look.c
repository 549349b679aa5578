/* SPDX-License-Identifier: MIT */
/*
 * The common part of the scans (looks) of all kinds of datasets: jobs for
 * several threads, the first failure, and the listing of directories. The
 * driver waits here for the workers without a time limit. The caller of
 * dataset_open() does not wait for the driver if it hangs.
 */
#include "loader/dataset/dataset_look_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define THREADS_DEFAULT 8
/* For fewer calls than this, the driver does not start workers. */
#define EACH_ALONE 4

/* -- Threads --------------------------------------------------------------- */

int look_fail(struct look *l, int code, const char *fmt, ...)
{
	struct error err;
	va_list ap;

	errno = -code;
	va_start(ap, fmt);
	/* A long message is cut */
	(void)vsnprintf(err.msg, sizeof(err.msg), fmt, ap);
	va_end(ap);
	LOCK_SCOPE(&l->lock);
	if (l->status == 0 && !look_stopped(l)) {
		l->status = code;
		l->err = err;
	}
	atomic_store_explicit(&l->stop, true, memory_order_relaxed);
	return code;
}

int look_workers(struct look *l)
{
	int rc;

	if (l->workers)
		return 0;
	rc = thread_pool_new(
		&l->workers, l->threads ? l->threads : THREADS_DEFAULT);
	return rc < 0 ? look_fail(l, rc, "cannot start a thread: %m") : 0;
}

void look_submit(struct look *l, struct thread_job *job)
{
	pthread_mutex_lock(&l->lock);
	l->pending++;
	pthread_mutex_unlock(&l->lock);
	thread_pool_submit(l->workers, job);
}

void look_ended(struct look *l)
{
	LOCK_SCOPE(&l->lock);
	if (--l->pending == 0)
		pthread_cond_broadcast(&l->changed);
}

int look_wait(struct look *l)
{
	LOCK_SCOPE(&l->lock);
	while (l->pending > 0)
		pthread_cond_wait(&l->changed, &l->lock);
	if (l->status < 0)
		return l->status;
	return look_stopped(l) ? -ECANCELED : 0;
}

/* A loop over the numbers below n. Several workers execute it. */
struct each {
	struct look *l;
	look_fn *fn;
	void *arg;
	uint64_t n;
	_Atomic uint64_t next; /* relaxed: it orders nothing else */
	struct each_job {
		struct thread_job job;
		struct each *each;
	} job[];
};

static void each_run(struct each *e)
{
	for (;;) {
		uint64_t i = atomic_fetch_add_explicit(
			&e->next, 1, memory_order_relaxed);

		if (i >= e->n || look_stopped(e->l))
			return;
		/* A call that fails has already recorded its message and told
		 * the other workers to stop. */
		(void)e->fn(e->l, e->arg, i);
		look_answered(e->l);
	}
}

static void each_main(struct thread_job *job)
{
	struct each *e = CONTAINER_OF(job, struct each_job, job)->each;

	each_run(e);
	look_ended(e->l);
}

int look_each(struct look *l, uint64_t n, look_fn *fn, void *arg)
{
	unsigned jobs = l->threads ? l->threads : THREADS_DEFAULT;
	CLEANUP_FREE struct each *e =
		malloc(sizeof(*e) + jobs * sizeof(e->job[0]));
	int rc;

	if (!e)
		return look_fail(l, -ENOMEM, "%m");
	e->l = l;
	e->fn = fn;
	e->arg = arg;
	e->n = n;
	atomic_init(&e->next, 0);
	if (n < EACH_ALONE) {
		each_run(e);
		return look_wait(l);
	}
	rc = look_workers(l);
	for (unsigned i = 0; rc == 0 && i < jobs && i < n; i++) {
		thread_job_init(&e->job[i].job, each_main);
		e->job[i].each = e;
		look_submit(l, &e->job[i].job);
	}
	return rc < 0 ? rc : look_wait(l);
}

/* -- Directories ----------------------------------------------------------- */

/* Returns the type of a file; a link has the type of its target. Returns -1 if
 * the file no longer exists. */
static int type_of(int dir_fd, const struct dirent *d)
{
	struct stat st;

	switch (d->d_type) {
	case DT_REG:
		return LOOK_FILE;
	case DT_DIR:
		return LOOK_DIR;
	case DT_LNK:
	case DT_UNKNOWN:
		break;
	default:
		return LOOK_OTHER;
	}
	if (fstatat(dir_fd, d->d_name, &st, 0) < 0)
		return d->d_type == DT_LNK ? LOOK_LINK : -1;
	if (S_ISREG(st.st_mode))
		return LOOK_FILE;
	return S_ISDIR(st.st_mode) ? LOOK_DIR : LOOK_OTHER;
}

static int list_one(DIR *dir, const struct dirent *d, list_fn *fn, void *arg)
{
	int type;

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	type = type_of(dirfd(dir), d);
	return type < 0 ? 0 : fn(arg, d->d_name, (enum look_type)type);
}

int look_list(struct look *l, int dir_fd, list_fn *fn, void *arg)
{
	CLEANUP_DIR DIR *dir = fdopendir(dir_fd);

	if (!dir) {
		int rc = -errno;

		/* Cannot lose data: nothing was written */
		(void)close(dir_fd);
		return rc;
	}
	for (;;) {
		const struct dirent *d;
		int rc;

		if (look_stopped(l))
			return -ECANCELED;
		errno = 0;
		d = readdir(dir);
		if (!d)
			return -errno;
		look_answered(l);
		rc = list_one(dir, d, fn, arg);
		if (rc != 0)
			return rc;
	}
}

int look_skip(struct look *l, uint64_t files, const char *dir, const char *name)
{
	char *path = NULL;

	l->skipped += files;
	if (files == 0)
		return 0;
	if (asprintf(&path, "%s%s", dir, name) < 0)
		return -ENOMEM;
	if (l->first_skipped && strcmp(l->first_skipped, path) <= 0) {
		free(path);
		return 0;
	}
	free(l->first_skipped);
	l->first_skipped = path;
	return 0;
}

bool look_is_image(const struct look *l, const char *name)
{
	static const char *const ends[] = {".jpg", ".jpeg", ".png"};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(ends) / sizeof(*ends); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return true;
	return l->any_file;
}

int64_t stat_mtime_ns(const struct stat *st)
{
	return clock_file_ns(st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

uint64_t stat_fingerprint(const struct stat *st)
{
	const uint64_t of[] = {st->st_ino, (uint64_t)st->st_size};

	if (S_ISDIR(st->st_mode))
		return hash64(of, sizeof(of), 0) | (uint64_t)1 << 63;
	return S_ISREG(st->st_mode) ? (uint64_t)st->st_size : UINT64_MAX >> 1;
}

/* -- Shards: files with several examples each ------------------------------ */

struct shard_list {
	struct look *l;
	const char *const *suffixes;
	struct array names; /* array of char *, each from strdup() */
};

static bool is_shard(const struct shard_list *s, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *p = s->suffixes; *p; p++)
		if (n >= strlen(*p) && strcmp(name + n - strlen(*p), *p) == 0)
			return true;
	return false;
}

static int shard_seen(void *arg, const char *name, enum look_type type)
{
	struct shard_list *s = arg;
	char **slot;

	if (!is_shard(s, name) || look_is_hidden(name) || type != LOOK_FILE) {
		s->l->ds->links += type == LOOK_LINK;
		return look_skip(s->l, 1, "", name);
	}
	slot = array_grow(&s->names, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = strdup(name);
	return *slot ? 0 : -ENOMEM;
}

static int look_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_shards(struct look *l, struct shard_list *s)
{
	size_t n = array_count(&s->names, sizeof(char *));
	char **name = array_data(&s->names);
	int rc = 0;

	if (n > UINT32_MAX)
		return -EOVERFLOW;
	if (n > 0)
		qsort(name, n, sizeof(*name), look_by_name);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = ds_add_shard(l->ds, name[i], 0);
	return rc;
}

int look_list_shards(struct look *l, const char *const *suffixes)
{
	struct shard_list s = {.l = l, .suffixes = suffixes};
	int fd = openat(
		l->ds->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : look_list(l, fd, shard_seen, &s);

	if (rc == 0)
		rc = add_shards(l, &s);
	for (size_t i = 0; i < array_count(&s.names, sizeof(char *)); i++)
		free(((char **)array_data(&s.names))[i]);
	array_release(&s.names);
	return rc < 0 ? look_fail(l, rc, "cannot list '%s': %m", l->path) : 0;
}

static int stat_shard(struct look *l, void *arg, uint64_t i)
{
	const char *file = dataset_shard_file(l->ds, (uint32_t)i);
	struct ds_shard *s = ds_shards(l->ds);
	int64_t *mtime_ns = arg;
	struct stat st;

	if (fstatat(l->ds->dir, file, &st, 0) < 0)
		return look_fail(l, -errno, "cannot look at '%s' of '%s': %m",
			file, l->path);
	if (!S_ISREG(st.st_mode))
		return look_fail(l, -EINVAL,
			"'%s' of '%s' is not a regular file", file, l->path);
	s[i].bytes = (uint64_t)st.st_size;
	mtime_ns[i] = stat_mtime_ns(&st);
	return 0;
}

int look_stat_shards(struct look *l)
{
	uint32_t n = dataset_shards(l->ds);
	CLEANUP_FREE int64_t *mtime_ns = calloc((size_t)n + 1, sizeof(int64_t));
	int rc = mtime_ns ? look_each(l, n, stat_shard, mtime_ns) : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const struct ds_shard *s = ds_shards(l->ds);
		/* Copy the name, because adding a text may move all texts. */
		CLEANUP_FREE char *file = strdup(dataset_shard_file(l->ds, i));

		rc = !file ? -ENOMEM
			   : ds_add_watch(l->ds, file, mtime_ns[i], s[i].bytes);
	}
	return rc < 0 ? look_fail(l, rc, "%m") : 0;
}
