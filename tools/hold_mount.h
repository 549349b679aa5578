/* SPDX-License-Identifier: MIT */
/* Finds the mount of refrain-hold in the kernel's list of mounts, and ends it
 * by force. One thread. */
#ifndef TOOLS_HOLD_MOUNT_H
#define TOOLS_HOLD_MOUNT_H

#include "common/base/err.h"

/* Returns the minor number of the refrain mount at a path; 0 if no such mount
 * is visible to this process. */
unsigned hold_mounted(const char *mountpoint);

/* Unmount by force, and end the kernel's connection. Other processes may still
 * have the connection: a daemon that hangs in the kernel has its descriptor
 * even after SIGKILL. Does nothing if another device, or none, is mounted at
 * the path. Returns 0, or -errno with err set. */
int hold_end_mount(const char *mountpoint, unsigned device, struct error *err);

#endif
