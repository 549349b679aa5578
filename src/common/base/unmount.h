/* SPDX-License-Identifier: MIT */
/* Unmounts a file system. If this process lacks the right, it uses the setuid
 * helper fusermount3. */
#ifndef BASE_UNMOUNT_H
#define BASE_UNMOUNT_H

#include <stdbool.h>

#include "common/base/err.h"

/*
 * Unmount the topmost mount at a path without links. `lazy`: detach it at once,
 * even while it is in use. Returns -EBUSY if it is in use, -EPERM if
 * fusermount3 fails or cannot be run, or another -errno, with err set.
 */
int unmount(const char *path, bool lazy, struct error *err);

/* End a FUSE mount and its connection to the kernel, even if processes that
 * hang in the kernel have the connection open. `device` is the minor number of
 * its device. The mount is detached even while it is in use. Returns like
 * unmount(). */
int unmount_by_force(const char *path, unsigned device, struct error *err);

#endif
