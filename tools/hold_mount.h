/* SPDX-License-Identifier: MIT */
/* The mount that refrain-hold holds, as the kernel lists it. One thread. */
#ifndef TOOLS_HOLD_MOUNT_H
#define TOOLS_HOLD_MOUNT_H

#include "common/base/err.h"

/* The minor number of the device of the refrain mount at a path; 0: no such
 * mount is visible here. */
unsigned hold_mounted(const char *mountpoint);

/*
 * End the mount, and the kernel's connection although other processes have it:
 * a daemon that hangs in the kernel keeps its copy, even after SIGKILL. Does
 * nothing if another device, or none, is mounted at the path. Returns -errno
 * with err set if it cannot be unmounted.
 */
int hold_end_mount(const char *mountpoint, unsigned device, struct error *err);

#endif
