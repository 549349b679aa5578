/* SPDX-License-Identifier: MIT */
/*
 * The loader beyond its public header, for the commands: a process that hosts a
 * share and consumes none of its batches.
 */
#ifndef LOADER_LOADER_H
#define LOADER_LOADER_H

#include <refrain/loader.h>

#include "base/err.h"

struct loader_host;

/*
 * Host the share of the configuration, until the last of its jobs has gone. The
 * batches are begun when share_jobs of them have joined. -EEXIST: it has a
 * host; otherwise as refrain_open().
 */
int loader_host_open(struct loader_host **out,
	const struct refrain_config *config, struct error *err);
/* A descriptor that polls readable when it has ended. */
int loader_host_fd(const struct loader_host *h);
/* End it, and free it: 0, or why it has failed. *stats is what it has read and
 * decoded. */
int loader_host_close(
	struct loader_host *h, struct refrain_stats *stats, struct error *err);

#endif
