/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of datasets: a folder in which tests make datasets, with
 * a cache folder beside it, and a function that opens a dataset.
 */
#ifndef TESTS_EXAMPLES_FIXTURE_H
#define TESTS_EXAMPLES_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/dataset/dataset.h"
#include "refrain/loader.h"
#include "suite.h"

static char base[64];  /* directory that contains the two directories below */
static char tree[80];  /* directory in which tests make datasets */
static char cache[80]; /* $XDG_CACHE_HOME */
static struct error err;

static int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void setup_tree(void)
{
	strcpy(base, "/tmp/refrain-examples-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	(void)snprintf(tree, sizeof(tree), "%s/tree", base);
	(void)snprintf(cache, sizeof(cache), "%s/cache", base);
	ck_assert_int_eq(mkdir(tree, 0755), 0);
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
	err.msg[0] = '\0';
}

static inline void teardown_tree(void)
{
	(void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *in_tree(const char *path)
{
	static char full[16][8192]; /* results stay valid until 16 more calls */
	static unsigned turn;
	char *to = full[turn++ % 16];

	(void)snprintf(to, sizeof(full[0]), "%s/%s", tree, path);
	return to;
}

/* Write a file in the tree, and create the directories above it. */
static inline void put_bytes(const char *path, const void *data, size_t n)
{
	char full[8192];
	int fd;

	(void)snprintf(full, sizeof(full), "%s", in_tree(path));
	for (char *p = full + strlen(tree) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		ck_assert(mkdir(full, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
	ck_assert_int_eq(close(fd), 0);
}

static inline void put(const char *path)
{
	put_bytes(path, path, strlen(path));
}

static inline void put_text(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

/* Run a shell command in the tree. */
__attribute__((format(printf, 1, 2))) static inline void sh(
	const char *fmt, ...)
{
	char command[4096];
	va_list ap;
	int n = snprintf(command, sizeof(command), "cd %s && ", tree);

	va_start(ap, fmt);
	(void)vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
	va_end(ap);
	ck_assert_msg(system(command) == 0, "failed: %s", command);
}

static unsigned ages; /* each call of age() sets another time */

static int age_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const time_t when = time(NULL) - 1000 - 100 * (time_t)ages;
	const struct timespec then[2] = {{.tv_sec = when}, {.tv_sec = when}};

	(void)st, (void)type, (void)ftw;
	return utimensat(AT_FDCWD, path, then, AT_SYMLINK_NOFOLLOW);
}

/* Make all times in the tree old, as if no file had changed for a while. */
static inline void age(void)
{
	ages++;
	ck_assert_int_eq(nftw(tree, age_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline struct dataset_options options_of(const char *path, int source)
{
	return (struct dataset_options){.path = path, .source = source};
}

static inline struct dataset *open_with(const struct dataset_options *o)
{
	struct dataset *ds;
	int rc = dataset_open(&ds, o, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, err.msg);
	return ds;
}

static inline struct dataset *open_as(const char *path, int source)
{
	struct dataset_options o = options_of(path, source);

	return open_with(&o);
}

/* Check that opening fails with this status, and that the message contains the
 * text. */
static inline void refused(
	const struct dataset_options *o, int code, const char *part)
{
	struct dataset *ds = (void *)&err;
	int rc = dataset_open(&ds, o, &err);

	ck_assert_int_eq(rc, code);
	ck_assert_ptr_null(ds);
	ck_assert_msg(strstr(err.msg, part), "no '%s' in: %s", part, err.msg);
}

static inline struct example at(const struct dataset *ds, uint64_t i)
{
	struct example ex;

	ck_assert_uint_lt(i, dataset_count(ds));
	dataset_example(ds, i, &ex);
	return ex;
}

/* Check the name and the label of the example with this number. */
static inline void example_is(
	const struct dataset *ds, uint64_t i, const char *name, int64_t label)
{
	struct example ex = at(ds, i);

	ck_assert_str_eq(ex.name, name);
	ck_assert_int_eq(ex.label, label);
}

static inline void class_is(
	const struct dataset *ds, uint64_t label, const char *name)
{
	size_t n = 0;
	const char *is = dataset_class_name(ds, label, &n);

	ck_assert_ptr_nonnull(is);
	ck_assert_str_eq(is, name);
	ck_assert_uint_eq(n, strlen(name));
}

#endif
