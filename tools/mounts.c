/* SPDX-License-Identifier: MIT */
/* Finds the mount that a user names. No state. */
#include "mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/base/path.h"
#include "analysis/fleet/client.h"

int mounts_find(const char *path, char **canonical, struct error *err)
{
	CLEANUP_FREE char *real = realpath(path, NULL);
	struct mountinfo_device m;
	int rc;

	if (!real && ctl_name_check(path, err) < 0)
		return -EINVAL;
	if (!real && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, -errno, "cannot find '%s': %m", path);
	if (!real)
		real = path_of_mountpoint(path);
	if (!real)
		return error_set(err, -errno, "cannot find '%s': %m", path);
	rc = mountinfo_find(real, &m);
	if (rc == -ENOENT)
		return error_set(
			err, -EINVAL, "nothing is mounted at '%s'", path);
	if (rc < 0)
		return error_set(err, rc, "cannot read the list of mounts: %m");
	if (!m.refrain)
		return error_set(err, -EINVAL,
			"'%s' is not a refrain mount; use umount(8)", path);
	*canonical = steal_ptr(&real);
	return 0;
}
