/* SPDX-License-Identifier: MIT */
/*
 * The options of `refrain exporter`. That command runs a program of its own, so
 * that the daemons of mounts load no HTTP server.
 */
#ifndef TOOLS_EXPORTER_OPTIONS_H
#define TOOLS_EXPORTER_OPTIONS_H

#include "analysis/fleet/exporter.h"

#define EXPORTER_PROGRAM "refrain-exporter"
#define EXPORTER_LISTEN "127.0.0.1:9760"

/* exporter_usage, in command.h, fills in a struct exporter_config. */

/*
 * Start an exporter that ends after the unmount, and do not wait for it: it
 * says itself why it cannot listen, and the mount goes on. -errno.
 */
int exporter_start(
	const char *where, const char *mountpoint, struct error *err);

#endif
