/* SPDX-License-Identifier: MIT */
/*
 * Kernel and library features that are probed and only ever make things
 * faster. The environment variable REFRAIN_DISABLE holds a comma-separated
 * list of names that are to be taken for absent; tests run with all of them.
 */
#ifndef BASE_FEATURE_H
#define BASE_FEATURE_H

#include <stdbool.h>

/*
 * True unless `name` is listed in REFRAIN_DISABLE (or it says "all"). Names
 * in use: io_uring, openat2, direct_io, tmpfile, stateless_open, readdirplus,
 * simd.
 */
bool feature_enabled(const char *name);

#endif
