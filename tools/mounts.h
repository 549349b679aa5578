/* SPDX-License-Identifier: MIT */
/*
 * Finds a refrain mount in the kernel's list of mounts. This also works when
 * its daemon is dead.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include "common/base/err.h"

/*
 * Get the path of the mount at `path` according to the kernel; the caller frees
 * *canonical. Returns 0, -EINVAL if nothing or another file system is mounted
 * there, or another -errno.
 */
int mounts_find(const char *path, char **canonical, struct error *err);

#endif
