/* SPDX-License-Identifier: MIT */
/* Defines the options of `refrain exporter`. The command runs the separate
 * program refrain-exporter, so that the daemons of mounts do not load an HTTP
 * server. */
#ifndef TOOLS_EXPORTER_OPTIONS_H
#define TOOLS_EXPORTER_OPTIONS_H

#include "analysis/fleet/exporter.h"

#define EXPORTER_PROGRAM "refrain-exporter"
#define EXPORTER_LISTEN "127.0.0.1:9760"

/* Filled in by exporter_usage, which command.h declares. */

/* Start an exporter that ends after the mount was unmounted. Does not wait for
 * it: the exporter reports by itself if it cannot listen, and the mount is
 * served without it. Returns 0 or -errno. */
int exporter_start(
	const char *where, const char *mountpoint, struct error *err);

#endif
