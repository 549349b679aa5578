/* SPDX-License-Identifier: MIT */
/* Stands in for src/daemon until that is there; no state. */
#include <errno.h>

#include "daemon/daemon.h"

int daemon_run(const struct mount_options *options, struct error *err)
{
	(void)options;
	return error_set(err, -ENOSYS, "this build has no daemon");
}
