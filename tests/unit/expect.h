/* SPDX-License-Identifier: MIT */
/* Assertions for inner loops. */
#ifndef TESTS_EXPECT_H
#define TESTS_EXPECT_H

#include <check.h>
#include <stdint.h>

/*
 * Check writes to a pipe for each of its assertions; these, for inner loops,
 * speak only when they fail.
 */
#define expect(what) expect_msg(what, "%s", #what)
#define expect_msg(what, ...)                                                  \
	do {                                                                   \
		if (!(what))                                                   \
			ck_abort_msg(__VA_ARGS__);                             \
	} while (0)
#define expect_op(a, op, b)                                                    \
	do {                                                                   \
		uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);               \
		if (!(a_ op b_))                                               \
			ck_abort_msg("%s: %ju, %s: %ju", #a, a_, #b, b_);      \
	} while (0)
#define expect_eq(a, b) expect_op(a, ==, b)
#define expect_ne(a, b) expect_op(a, !=, b)
#define expect_le(a, b) expect_op(a, <=, b)
#define expect_lt(a, b) expect_op(a, <, b)
#define expect_ge(a, b) expect_op(a, >=, b)
#define expect_gt(a, b) expect_op(a, >, b)

#endif
