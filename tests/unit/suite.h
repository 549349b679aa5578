/* SPDX-License-Identifier: MIT */
/* The main() of every unit test. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * Check writes a message for every assertion that holds, to tell where a test
 * was that crashes; millions of them were half of what the tests cost. The
 * first few at each place say as much.
 */
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
 * A new case of the suite. Each of its tests may take four minutes, times
 * CK_TIMEOUT_MULTIPLIER: that ends what hangs, and not what is slow because
 * the machine is busy.
 */
TCase *case_of(Suite *s, const char *name);

/* One whose tests each run between these. */
TCase *case_with(Suite *s, const char *name, void (*setup)(void),
	void (*teardown)(void));

/*
 * Run it as Check's environment says (CK_VERBOSITY, CK_RUN_CASE, CK_FORK) and
 * free it: the exit status of the program.
 */
int run_suite(Suite *s);

void case_add(TCase *t, const TTest *const tests[], unsigned n);

/*
 * Valgrind runs no other thread while one looks for a name: nobody can leave
 * behind what hangs there.
 */
bool test_on_valgrind(void);

/*
 * Valgrind knows no pidfd_open(), nor do some containers: a host then sees that
 * a member has gone, and a member its host, by the socket alone.
 */
bool test_has_pidfd(void);

/*
 * Where a test makes its files: a directory of the program's own in $TMPDIR if
 * that is a short one; or else, where nothing hangs on a file system of the
 * disk, in memory if there is room. run_suite() removes it, since a test that
 * fails or hangs does not clean up.
 */
const char *test_dir(void);
const char *test_memory_dir(void);

#endif
