/* SPDX-License-Identifier: MIT */
/*
 * For tests of origins: requests that a test can wait for, a source directory
 * with the names and bytes of a synthetic origin, and the origins to test, as a
 * table. One test thread; callbacks only use members that `fixture_lock`
 * guards.
 */
#ifndef TESTS_ORIGIN_FIXTURE_H
#define TESTS_ORIGIN_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/counters.h"
#include "common/base/timer.h"
#include "origin/origin.h"
#include "suite.h"

#define FILES 6
#define DIRS 2
#define SIZE_BYTES 300001
#define SEED 7
#define SPEC "files=6,dirs=2,size=300001,seed=7"
#define MTIME_NS INT64_C(1000000000000000000)

static pthread_mutex_t fixture_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fixture_some = PTHREAD_COND_INITIALIZER;

/* -- Requests that can be waited for -- */

struct read_wait {
	struct origin_read r;
	unsigned done; /* guarded by fixture_lock, like the next members */
	unsigned calls;
	int status;
	size_t got;
	unsigned char *data; /* r.len bytes; the caller frees them */
};

/* Check that bytes come in order, without gaps, and not more than requested. */
static inline void read_wait_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct read_wait *w = CONTAINER_OF(r, struct read_wait, r);

	pthread_mutex_lock(&fixture_lock);
	ck_assert_uint_eq(w->done, 0);
	ck_assert_uint_gt(len, 0);
	ck_assert_uint_eq(off, r->off + w->got);
	ck_assert_uint_le(len, r->len - w->got);
	memcpy(w->data + w->got, bytes, len);
	w->got += len;
	w->calls++;
	pthread_mutex_unlock(&fixture_lock);
}

static inline void read_wait_done(struct origin_request *q, int status)
{
	struct read_wait *w = CONTAINER_OF(q, struct read_wait, r.req);

	pthread_mutex_lock(&fixture_lock);
	ck_assert_int_le(status, 0);
	if (status == 0)
		ck_assert_uint_eq(w->got, w->r.len);
	w->status = status;
	w->done++;
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

static inline void read_prepare(struct read_wait *w, struct origin_file *f,
	struct file_version want, uint64_t off, size_t len)
{
	memset(w, 0, sizeof(*w));
	w->r.file = f;
	w->r.want = want;
	w->r.off = off;
	w->r.len = len;
	w->r.req.done = read_wait_done;
	w->r.data = read_wait_data;
	w->data = malloc(len);
}

static inline void read_begin(struct origin *o, struct read_wait *w,
	struct origin_file *f, struct file_version want, uint64_t off,
	size_t len)
{
	read_prepare(w, f, want, off, len);
	origin_read(o, &w->r);
}

/* Wait until the read has ended. Returns its length, or -errno. */
static inline int read_end(struct read_wait *w)
{
	int status;

	pthread_mutex_lock(&fixture_lock);
	while (!w->done)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	status = w->status < 0 ? w->status : (int)w->r.len;
	if (status < 0) {
		free(w->data);
		w->data = NULL;
	}
	pthread_mutex_unlock(&fixture_lock);
	return status;
}

/* Read once through a new file handle; the caller frees *data. */
static inline int read_once(struct origin *o, const char *path,
	struct file_version want, uint64_t off, size_t len,
	unsigned char **data)
{
	struct origin_file *f = origin_file_new(o, path);
	struct read_wait w;
	int status;

	ck_assert_ptr_nonnull(f);
	read_begin(o, &w, f, want, off, len);
	status = read_end(&w);
	origin_file_free(o, f);
	if (data)
		*data = w.data;
	else
		free(w.data);
	return status;
}

struct stat_wait {
	struct origin_stat s;
	unsigned done; /* guarded by fixture_lock, like the next members */
	int status;
	struct file_attr attr;
	char target[4096];
};

static inline void stat_wait_done(struct origin_request *q, int status)
{
	struct stat_wait *w = CONTAINER_OF(q, struct stat_wait, s.req);

	pthread_mutex_lock(&fixture_lock);
	w->status = status;
	if (status == 0)
		w->attr = *w->s.attr;
	if (status == 0 && w->s.target)
		strcpy(w->target, w->s.target);
	w->done++;
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

static inline int stat_once(
	struct origin *o, const char *path, struct stat_wait *w)
{
	memset(w, 0, sizeof(*w));
	w->s.path = path;
	w->s.req.done = stat_wait_done;
	origin_stat(o, &w->s);
	pthread_mutex_lock(&fixture_lock);
	while (!w->done)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
	return w->status;
}

struct seen {
	char *name, *target;
	struct file_attr attr;
};

struct list_wait {
	struct origin_list l;
	unsigned done; /* guarded by fixture_lock, like the next members */
	int status;
	struct seen *seen; /* sorted by name when the listing is done */
	size_t n;
};

static inline void list_wait_batch(
	struct origin_list *l, const struct file_entry *entries, size_t n)
{
	struct list_wait *w = CONTAINER_OF(l, struct list_wait, l);

	pthread_mutex_lock(&fixture_lock);
	w->seen = realloc(w->seen, (w->n + n) * sizeof(*w->seen));
	for (size_t i = 0; i < n; i++) {
		struct seen *s = &w->seen[w->n++];

		s->name = strdup(entries[i].name);
		s->target =
			entries[i].target ? strdup(entries[i].target) : NULL;
		s->attr = entries[i].attr;
	}
	pthread_mutex_unlock(&fixture_lock);
}

static inline void list_forget(struct list_wait *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->seen[i].name);
		free(w->seen[i].target);
	}
	free(w->seen);
	w->seen = NULL;
	w->n = 0;
}

static inline void list_wait_restart(struct origin_list *l)
{
	pthread_mutex_lock(&fixture_lock);
	list_forget(CONTAINER_OF(l, struct list_wait, l));
	pthread_mutex_unlock(&fixture_lock);
}

static inline void list_wait_done(struct origin_request *q, int status)
{
	struct list_wait *w = CONTAINER_OF(q, struct list_wait, l.req);

	pthread_mutex_lock(&fixture_lock);
	w->status = status;
	w->done++;
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

static inline int seen_compare(const void *a, const void *b)
{
	return strcmp(
		((const struct seen *)a)->name, ((const struct seen *)b)->name);
}

/* List once; the caller calls list_forget(). */
static inline int list_once(
	struct origin *o, const char *path, struct list_wait *w)
{
	memset(w, 0, sizeof(*w));
	w->l.path = path;
	w->l.batch = list_wait_batch;
	w->l.restart = list_wait_restart;
	w->l.req.done = list_wait_done;
	origin_list(o, &w->l);
	pthread_mutex_lock(&fixture_lock);
	while (!w->done)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
	if (w->n > 0)
		qsort(w->seen, w->n, sizeof(*w->seen), seen_compare);
	return w->status;
}

/* -- A source -- */

static char source[64] __attribute__((unused));

static inline const char *in_source(const char *path)
{
	static char buf[8192];

	(void)snprintf(buf, sizeof(buf), "%s/%s", source, path);
	return buf;
}

static inline void set_mtime(const char *path, int64_t mtime_ns)
{
	struct timespec ts[2] = {
		{0, UTIME_OMIT},
		{mtime_ns / 1000000000, mtime_ns % 1000000000},
	};

	ck_assert_int_eq(
		utimensat(AT_FDCWD, in_source(path), ts, AT_SYMLINK_NOFOLLOW),
		0);
}

/* Create a new inode under this name, with the bytes of `like`. */
static inline void put_file(const char *path, const char *like, uint64_t seed,
	size_t size, int64_t mtime_ns)
{
	unsigned char *bytes = malloc(size + 1);
	int fd = open(in_source("tmp"), O_WRONLY | O_CREAT | O_EXCL, 0644);
	char *tmp = strdup(in_source("tmp"));

	origin_synthetic_fill(seed, like, 0, size, bytes);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(rename(tmp, in_source(path)), 0);
	set_mtime(path, mtime_ns);
	free(tmp);
	free(bytes);
}

static inline const char *file_path(unsigned i)
{
	static char buf[FILES][32];

	(void)snprintf(buf[i], sizeof(buf[i]), "d%04u/f%06u.bin",
		i / (FILES / DIRS), i);
	return buf[i];
}

static inline void make_source(void)
{
	(void)snprintf(
		source, sizeof(source), "%s/refrain-origin-XXXXXX", test_dir());
	ck_assert_ptr_nonnull(mkdtemp(source));
	for (unsigned i = 0; i < FILES; i++) {
		char dir[16];

		(void)snprintf(dir, sizeof(dir), "d%04u", i / (FILES / DIRS));
		(void)mkdir(in_source(dir), 0755);
		put_file(
			file_path(i), file_path(i), SEED, SIZE_BYTES, MTIME_NS);
	}
}

static inline int remove_one(
	const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static inline void remove_source(void)
{
	(void)nftw(source, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The version of all files, except for the tags that some origins add. */
static struct file_version version = {SIZE_BYTES, MTIME_NS, 0};

/* Compare `len` bytes with the bytes of file `like` at `off`. */
static inline void check_bytes(
	const char *like, uint64_t off, size_t len, const unsigned char *data)
{
	unsigned char *expected = malloc(len);

	origin_synthetic_fill(SEED, like, off, len, expected);
	ck_assert_msg(memcmp(expected, data, len) == 0,
		"%s: other bytes at %llu + %zu", like, (unsigned long long)off,
		len);
	free(expected);
}

#endif
