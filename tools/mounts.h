/* SPDX-License-Identifier: MIT */
/*
 * Finds a refrain mount in the kernel's list of mounts. This also works when
 * its daemon is dead.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include "common/base/err.h"

/*
 * Return the path of the mount at `path` as the kernel knows it; the caller
 * frees it. Returns -EINVAL if nothing or something else is mounted there, or
 * -errno.
 */
int mounts_find(const char *path, char **canonical, struct error *err);

#endif
