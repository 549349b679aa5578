/* SPDX-License-Identifier: MIT */
/*
 * Finds a refrain mount in the kernel's list of mounts. This also works when
 * its daemon is dead.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include "common/base/err.h"

/* Find the mount at `path`, and get its path as the kernel has it; the caller
 * frees *canonical. Returns 0; -EINVAL if nothing is mounted at `path`, or
 * another file system; or another -errno. */
int mounts_find(const char *path, char **canonical, struct error *err);

#endif
