/* SPDX-License-Identifier: MIT */
/* Finds a mount and ends it by force; see hold_mount.h. */
#include "hold_mount.h"

#include "common/base/mountinfo.h"
#include "common/base/unmount.h"

unsigned hold_mounted(const char *mountpoint)
{
	struct mountinfo_device d;

	return mountinfo_find(mountpoint, &d) == 0 && d.refrain ? d.minor : 0;
}

int hold_end_mount(const char *mountpoint, unsigned device, struct error *err)
{
	if (device == 0 || hold_mounted(mountpoint) != device)
		return 0;
	return unmount_by_force(mountpoint, device, err);
}
