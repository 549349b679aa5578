/* SPDX-License-Identifier: MIT */
/* The main() of every unit test. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Check writes a message for each assertion that holds, to show where a test
 * was when it crashed. Millions of messages took half of the time of the tests.
 * So only the first few messages at each place are written. */
#define MARKS_MAX 4
#define _mark_point(file, line)                                                \
	(__extension__({                                                       \
		static atomic_uint marks_;                                     \
		if (atomic_load_explicit(&marks_, memory_order_relaxed) <      \
			MARKS_MAX) {                                           \
			atomic_fetch_add_explicit(                             \
				&marks_, 1, memory_order_relaxed);             \
			(_mark_point)(file, line);                             \
		}                                                              \
	}))

/*
 * Add a case to the suite. Each of its tests may take four minutes, times
 * CK_TIMEOUT_MULTIPLIER: enough for a busy machine, so only a test that hangs
 * is ended.
 */
TCase *case_of(Suite *s, const char *name);

/* Like case_of(), with functions to run before and after each test. */
TCase *case_with(Suite *s, const char *name, void (*setup)(void),
	void (*teardown)(void));

/*
 * Run the suite with the settings of Check's environment (CK_VERBOSITY,
 * CK_RUN_CASE, CK_FORK), and free the suite. Returns the exit status of the
 * program.
 */
int run_suite(Suite *s);

void case_add(TCase *t, const TTest *const tests[], unsigned n);

/* Under valgrind, all other threads stop while a thread looks up a name. So a
 * look-up that hangs cannot be left behind. */
bool test_on_valgrind(void);

/* Is pidfd_open() missing, as under valgrind and in some containers? Without
 * it, a host and a member notice the end of the other process only by the
 * socket. */
bool test_has_pidfd(void);

/*
 * test_dir() returns the directory for the files of a test, which is in $TMPDIR
 * if that has a short path. test_memory_dir() returns a directory for files
 * that need not be on a disk: it is in memory if there is room. Both belong to
 * the program. run_suite() removes them, because a test that fails or hangs
 * does not clean up.
 */
const char *test_dir(void);
const char *test_memory_dir(void);

#endif
