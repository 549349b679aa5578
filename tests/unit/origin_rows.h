/* SPDX-License-Identifier: MIT */
/* The table of origins to test. All of them show the same tree. Tests of
 * abilities that only the posix origin has run on those rows whose lowest
 * origin is a posix origin. */
#ifndef TESTS_ORIGIN_ROWS_H
#define TESTS_ORIGIN_ROWS_H

#include "origin_fixture.h"

#include <malloc.h>
#include <sched.h>
#include <sys/mount.h>

#define POSIX 1u
#define DIRECT 2u
#define NAMED 4u
#define S3 8u
#define HTTP 16u
#define REMOTE (S3 | HTTP)
#define SINGLE 32u /* one request at a time */

#ifdef ROWS_REMOTE
#include "origin_remote.h"
#endif

static const struct setup {
	const char *name;
	const char *disable; /* list of features to disable (REFRAIN_DISABLE) */
	unsigned flags;
	int retry; /* the origin has a layer of retries */
	/* the fault that is injected below the retries, or NULL; for a remote
	 * origin, the fault of its server */
	const char *fault;
} setups[] = {
	{"posix", "", POSIX | DIRECT, 0, NULL},
	{"posix buffered", "direct_io", POSIX, 0, NULL},
	{"posix threads", "io_uring", POSIX | DIRECT, 0, NULL},
	{"posix plain", "all", POSIX, 0, NULL},
	{"retry of posix", "", POSIX, 1, NULL},
	{"fault of posix", "", POSIX, 0, ""},
	{"retry of faulty posix", "", POSIX, 1,
		"error=0.2,short=0.2,delay=2ms,seed=3"},
	{"retry of faulty posix plain", "all", POSIX, 1,
		"error=0.2,short=0.2,meta=1,seed=4"},
	{"retry of posix in pieces", "", POSIX, 1,
		"pieces=4097,short=0.3,error=0.1,seed=5"},
	{"synthetic", "", 0, 0, NULL},
	{"synthetic in pieces", "", 0, 0, "pieces=1000"},
	{"retry of cut synthetic", "", 0, 1, "pieces=7K,short=0.5,seed=6"},
	{"retry of slow synthetic", "", 0, 1, "rate=1G,delay=1ms,meta=1"},
	{"named synthetic", "", NAMED, 0, NULL},
	{"retry of faulty named synthetic", "", NAMED, 1, "error=0.2,seed=8"},
#ifdef ROWS_REMOTE
	{"s3", "", S3, 0, NULL},
	{"http", "", HTTP, 0, NULL},
	{"retry of s3 that cuts", "", S3, 1, "cut=0.2"},
	{"named s3", "", NAMED | S3, 0, NULL},
	{"s3 one at a time", "", S3 | SINGLE, 0, NULL},
	{"retry of busy s3 one at a time", "", S3 | SINGLE, 1, "busy=0.2"},
	{"retry of http that cuts, one at a time", "", HTTP | SINGLE, 1,
		"cut=0.2"},
#endif
};
#define SETUPS ((int)(sizeof(setups) / sizeof(setups[0])))

static struct origin *o;
static struct timers *timers;
static struct counters counters;
/* The number of attempts is so high that a request is given up only if the test
 * has failed. */
static const struct retry_config tries = {
	.attempts = 40, .pause_ns = NS_PER_MS};

static inline void setup_source(void)
{
	/* Fill new memory with a pattern, so that a member which an origin does
	 * not set is not 0 by chance. */
	(void)mallopt(M_PERTURB, 0xa5);
	make_source();
	ck_assert_int_eq(timers_new(&timers), 0);
}

static inline void teardown_source(void)
{
	timers_free(timers);
	remove_source();
}

/* Write an index of the source, as `refrain index` does. */
static inline int row_index(
	void *arg, char **text, size_t *bytes, struct error *err)
{
	FILE *f = open_memstream(text, bytes);

	(void)arg;
	(void)err;
	fputs("# refrain index 2: path, size, mtime, tag, label\n", f);
	for (unsigned i = 0; i < FILES; i++)
		fprintf(f, "%s\t%d\t1000000000.000000000\t%0*llx\td\n",
			file_path(i), SIZE_BYTES, version.tag ? 16 : 0,
			(unsigned long long)version.tag);
	return fclose(f);
}

static inline bool row_known(
	void *arg, const char *path, struct file_attr *attr)
{
	*attr = (struct file_attr){.version = version, .kind = KIND_DIR};
	(void)arg;
	for (unsigned i = 0; i < FILES; i++) {
		size_t n = strcspn(file_path(i), "/");

		if (strcmp(path, file_path(i)) == 0) {
			attr->kind = KIND_FILE;
			return true;
		}
		if (strlen(path) == n && memcmp(path, file_path(i), n) == 0)
			return true;
	}
	return false;
}

static inline void row_failed(void *arg, const struct error *why)
{
	(void)arg;
	ck_abort_msg("%s", why->msg);
}

static inline int name_row(struct error *err)
{
	static const struct origin_named_config config = {
		.load = row_index, .known = row_known, .failed = row_failed};

	return origin_named_new(&o, o, &config, err);
}

static inline void open_row(int row)
{
	const struct setup *s = &setups[row];
	struct error err = {""};
	const char *outer = getenv("REFRAIN_DISABLE");
	char disable[128];
	int rc;

	/* A feature that is disabled for all tests (the ring under valgrind)
	 * stays disabled. */
	(void)snprintf(disable, sizeof(disable), "%s,%s", outer ? outer : "",
		s->disable);
	setenv("REFRAIN_DISABLE", disable, 1);
	if (s->flags & POSIX)
		rc = origin_posix_new(&o, source, &err);
#ifdef ROWS_REMOTE
	else if (s->flags & REMOTE)
		rc = far_open(&o, s->flags & S3, s->flags & SINGLE ? 1 : 0,
			s->fault, &counters, &err);
#endif
	else
		rc = origin_synthetic_new(&o, SPEC, &err);
	if (rc == 0 && s->flags & NAMED)
		rc = name_row(&err);
	ck_assert_msg(rc == 0, "%s: %s", s->name, err.msg);
	if (s->fault && !(s->flags & REMOTE))
		ck_assert_msg(
			origin_fault_new(&o, o, s->fault, timers, &err) == 0,
			"%s", err.msg);
	if (s->retry)
		ck_assert_int_eq(origin_retry_new(&o, o, &tries, timers,
					 &counters, &err),
			0);
}

/* The rows over the posix origin come before the others. */
static inline bool is_posix(int row)
{
	return setups[row].flags & POSIX;
}

static inline void close_row(void)
{
	origin_free(o);
	o = NULL;
#ifdef ROWS_REMOTE
	far_end();
#endif
}

/*
 * Give this thread, and threads that it starts, a mount namespace of their own.
 * If mounts are shared, unmounts outside have an effect inside.
 */
static inline bool own_mounts(void)
{
	if (unshare(CLONE_NEWNS) == 0 &&
		mount("none", "/", "none", MS_REC | MS_SLAVE, NULL) == 0)
		return true;
	(void)fprintf(stderr, "skipped: mounting takes root\n");
	return false;
}

#endif
