/* SPDX-License-Identifier: MIT */
/* Finds a mount and ends it by force; see hold_mount.h. */
#include "hold_mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/base/mountinfo.h"
#include "common/base/unmount.h"

unsigned hold_mounted(const char *mountpoint)
{
	struct mountinfo_device d;

	return mountinfo_find(mountpoint, &d) == 0 && d.refrain ? d.minor : 0;
}

/* Abort the connection through the kernel's control file system, if it is
 * mounted. The user who mounted may write the file. */
static void abort_connection(unsigned device)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort",
		device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* then the connection ends with its last copy */
	(void)!write(fd, "1", 1);
	(void)close(fd);
}

int hold_end_mount(const char *mountpoint, unsigned device, struct error *err)
{
	if (device == 0 || hold_mounted(mountpoint) != device)
		return 0;
	/* Root can unmount by force. */
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | MNT_FORCE | MNT_DETACH) == 0)
		return 0;
	abort_connection(device);
	return unmount(mountpoint, true, err);
}
