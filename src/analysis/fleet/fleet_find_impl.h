/* SPDX-License-Identifier: MIT */
/*
 * Asks a mount for the path of its control socket in a child process, because
 * the daemon may never answer. The caller has one thread.
 */
#ifndef FLEET_FIND_IMPL_H
#define FLEET_FIND_IMPL_H

#include <limits.h>
#include <sys/types.h>

#include "common/base/probe.h"

struct fleet_find {
	struct probe probe;
	const char *mountpoint;
	uid_t uid; /* owner of the mount */
	gid_t gid;
};

/* Start a search. The caller has set the last three members. Returns 0 or
 * -errno. */
int fleet_find_start(struct fleet_find *find);

/* End a search whose probe is readable. Returns the length of the path, or
 * -errno. */
int fleet_find_end(struct fleet_find *find, char path[PATH_MAX]);

#endif
