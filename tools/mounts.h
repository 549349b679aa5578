/* SPDX-License-Identifier: MIT */
/*
 * Finding a refrain mount in the kernel's list, which works for one whose
 * daemon is dead, too.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include "base/err.h"

/*
 * The path of the mount at `path` as the kernel knows it; the caller frees
 * it. -EINVAL if nothing or something else is mounted there; -errno.
 */
int mounts_find(const char *path, char **canonical, struct error *err);

#endif
