/* SPDX-License-Identifier: MIT */
/*
 * For tests of loaders that share batches: several in one process, one after
 * the other in one thread, compared with the simple loader byte for byte.
 */
#ifndef SHARED_FIXTURE_H
#define SHARED_FIXTURE_H

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

#include "loader_fixture.h"

static char run_dir[256];

/* true in a test that leaves the memory of a hanging host behind on purpose */
static bool left_on_purpose;

/* LeakSanitizer calls this at the end of each test. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return left_on_purpose;
}

/* Turn the search for leaks off in this process; each test has its own process.
 */
static inline void look_for_no_leaks(void)
{
	left_on_purpose = true;
#if __has_include(<valgrind/valgrind.h>)
	VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

static inline void make_all(void)
{
	fixture_make();
	(void)snprintf(run_dir, sizeof(run_dir), "%s/shared.XXXXXX",
		test_memory_dir());
	ck_assert_ptr_nonnull(mkdtemp(run_dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", run_dir, 1), 0);
}

static inline void remove_all(void)
{
	(void)nftw(run_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	fixture_remove();
}

static inline struct refrain_config shared_config(uint32_t jobs)
{
	struct refrain_config c = config_of();

	c.share = "x";
	c.share_jobs = jobs;
	return c;
}

/* Returns the configuration of a loader that runs alone with the same stream.
 */
static inline struct refrain_config alone(struct refrain_config c)
{
	uint32_t slices = c.share_batch ? c.share_batch / c.batch : 1;

	if (slices > 1) {
		c.window = c.window - c.share_batch + c.batch;
		c.min_lag = slices;
	}
	c.share = NULL;
	c.share_jobs = c.share_batch = 0;
	return c;
}

/* Take one batch of the job and compare it. Returns the number of its samples.
 */
static inline uint32_t step_of(struct refrain_loader *l, struct simple *r)
{
	const struct refrain_batch *b;
	int rc = refrain_next(l, &b, WAIT_MS);
	uint32_t n;

	ck_assert_msg(rc >= 0, "%s", refrain_message(l));
	if (rc == 0) {
		ck_assert_uint_eq(simple_next(r, NULL), 0);
		return 0;
	}
	n = simple_next(r, b);
	refrain_release(b);
	return n;
}

/* Run the whole job in a child process, which is killed before it ends. */
static inline void host_in_child(const struct refrain_config *c, int told)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;

	(void)!write(told, "x", 1);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	(void)pause();
	_exit(0);
}

static inline int refused(const struct refrain_config *c, const char *what)
{
	struct refrain_loader *l;
	int rc = refrain_open(&l, c);

	ck_assert_int_lt(rc, 0);
	ck_assert_msg(strstr(refrain_message(NULL), what), "%s",
		refrain_message(NULL));
	return rc;
}

static inline uint64_t hash_of(const struct refrain_config *c)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;
	uint64_t hash;

	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	hash = stats_of(l).stream_hash;
	ck_assert_int_eq(refrain_close(l), 0);
	return hash;
}

static inline struct refrain_config changing_config(
	uint32_t jobs, const char *log)
{
	struct refrain_config c = shared_config(jobs);

	c.echo = REFRAIN_ECHO_AUTO;
	c.echo_max = 2;
	c.echo_log = log;
	c.epochs = 4;
	c.window = 512;
	return c;
}

#endif
