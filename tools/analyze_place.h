/* SPDX-License-Identifier: MIT */
/*
 * The directories and the mount of one analysis, which exist only as long as
 * it does; and those that killed analyses have left.
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

/* Make the mountpoint in `tmp`, and a directory for the cache in `top`. On
 * failure place_remove() removes what was made. */
int place_make(struct analyze_place *at, const char *tmp, const char *top,
	struct error *err);

/*
 * Unmount, end the daemon and remove everything, also after a failure or a
 * signal. -errno with err set if something is left.
 */
int place_remove(struct analyze_place *at, struct error *err);

/* Remove what analyses that were killed have left in these two. */
void place_remove_left(const char *tmp, const char *top);

#endif
