/* SPDX-License-Identifier: MIT */
/* Makes the directories and the mount of one analysis, and removes them at its
 * end. Also removes those that killed analyses have left. */
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

/* End the daemon, and remove the mount and the directories. This also works
 * after a failure of place_make() and after a signal. Returns 0, or -errno with
 * err set if something could not be removed. */
int place_remove(struct analyze_place *at, struct error *err);

/* Remove the directories and mounts of killed analyses from these two
 * directories. */
void place_remove_left(const char *tmp, const char *top);

#endif
