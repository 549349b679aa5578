/* SPDX-License-Identifier: MIT */
/* Unmounting, by the setuid helper where only that may. */
#ifndef BASE_UNMOUNT_H
#define BASE_UNMOUNT_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Unmount what is on top at a path without links; lazily: at once, also while
 * it is in use. Returns -EBUSY if it is in use, -EPERM if fusermount3 fails or
 * cannot be run, or another -errno, with err set.
 */
int unmount(const char *path, bool lazy, struct error *err);

#endif
