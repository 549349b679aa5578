/* SPDX-License-Identifier: MIT */
/* What the main() of every unit test does. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>

/*
 * A new case of the suite. Each of its tests may take a minute, times
 * CK_TIMEOUT_MULTIPLIER: that bounds what hangs, and is no measure of speed.
 */
TCase *case_of(Suite *s, const char *name);

/*
 * Run it as Check's environment says (CK_VERBOSITY, CK_RUN_CASE, CK_FORK) and
 * free it: the exit status of the program.
 */
int run_suite(Suite *s);

#endif
