/* SPDX-License-Identifier: MIT */
/*
 * The directories and the mount of one analysis, which exist only while it
 * runs; and the leftovers of killed analyses.
 */
#ifndef TOOLS_ANALYZE_PLACE_H
#define TOOLS_ANALYZE_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "common/base/err.h"

struct analyze_place {
	char mountpoint[PATH_MAX], cache[PATH_MAX], tier[PATH_MAX + 8];
	bool mounted;
};

/* Create the mountpoint in `tmp`, and a directory for the cache in `top`. After
 * a failure, place_remove() removes what was created. */
int place_make(struct analyze_place *at, const char *tmp, const char *top,
	struct error *err);

/*
 * Unmount, end the daemon and remove everything, also after a failure or a
 * signal. Returns 0, or -errno with err set if an entry is left.
 */
int place_remove(struct analyze_place *at, struct error *err);

/* Remove the leftovers of killed analyses in these two directories. */
void place_remove_left(const char *tmp, const char *top);

#endif
