/* SPDX-License-Identifier: MIT */
/* Limits of the control group that this process runs in. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdint.h>

#define CGROUP_NO_LIMIT UINT64_MAX

/*
 * Returns the smallest memory limit of the control group of this process and of
 * the groups above it, as far as they can be seen; CGROUP_NO_LIMIT if none has
 * a limit or nothing can be read. Control groups of version 1, version 2 and
 * both at once are read, with and without a cgroup namespace. `root` is the
 * directory in which to find proc/ and the mounted hierarchies: "" outside of
 * tests. Opens a handful of files, so do not call this often.
 */
uint64_t cgroup_memory_limit(const char *root);

/* Returns the smallest limit of processors, found in the same way, in
 * thousandths of a processor. */
uint64_t cgroup_processor_limit(const char *root);

#endif
