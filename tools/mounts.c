/* SPDX-License-Identifier: MIT */
/* Reads /proc/self/mountinfo and finds one mount in it. No state. */
#include "mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mountinfo.h"
#include "base/path.h"

/* 1: a refrain mount, 0: another, -ENOENT: none. The last one is on top. */
static int find_type(const char *mountpoint)
{
	struct mountinfo_entry e;
	struct mountinfo list;
	int found = mountinfo_open(&list, 0);

	if (found < 0)
		return found;
	found = -ENOENT;
	while (mountinfo_next(&list, &e))
		if (strcmp(e.path, mountpoint) == 0)
			found = strcmp(e.type, MOUNTINFO_REFRAIN) == 0;
	mountinfo_close(&list);
	return found;
}

int mounts_find(const char *path, char **canonical, struct error *err)
{
	CLEANUP_FREE char *real = realpath(path, NULL);
	int rc;

	if (!real && strstr(path, "://"))
		return error_set(err, -EINVAL,
			"a mount is named by its directory, not by the URL of "
			"its source");
	if (!real && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, -errno, "cannot find '%s': %m", path);
	if (!real)
		real = path_of_mountpoint(path);
	if (!real)
		return error_set(err, -errno, "cannot find '%s': %m", path);
	rc = find_type(real);
	if (rc == -ENOENT)
		return error_set(
			err, -EINVAL, "nothing is mounted at '%s'", path);
	if (rc < 0)
		return error_set(err, rc, "cannot read the list of mounts: %m");
	if (rc == 0)
		return error_set(err, -EINVAL,
			"'%s' is not a refrain mount; use umount(8)", path);
	*canonical = steal_ptr(&real);
	return 0;
}
