/* SPDX-License-Identifier: MIT */
/* Features of the kernel and of libraries that the program probes, and that
 * only affect speed. The environment variable REFRAIN_DISABLE is a list, with
 * commas, of features to treat as absent; tests run with all of them disabled.
 */
#ifndef BASE_FEATURE_H
#define BASE_FEATURE_H

#include <stdbool.h>

/* Returns false if REFRAIN_DISABLE lists `name` or "all". Names in use:
 * io_uring, openat2, direct_io, tmpfile, stateless_open, readdirplus, simd,
 * inotify, busy_poll, resend, at_once. */
bool feature_enabled(const char *name);

#endif
