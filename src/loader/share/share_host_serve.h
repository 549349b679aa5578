/* SPDX-License-Identifier: MIT */
/*
 * Functions of the loader for the commands, besides its public header: a
 * process can host a share without consuming its batches.
 */
#ifndef SHARE_HOST_SERVE_H
#define SHARE_HOST_SERVE_H

#include <refrain/loader.h>

#include "common/base/err.h"

struct loader_host;

/*
 * Host the share of the configuration until its last job has left. Production
 * of batches starts when share_jobs jobs have joined. Returns -EEXIST if the
 * share has a host; otherwise like refrain_open().
 */
int loader_host_open(struct loader_host **out,
	const struct refrain_config *config, struct error *err);
/* A descriptor that polls readable when the share has ended. */
int loader_host_fd(const struct loader_host *h);
/* End the share and free the host. Returns 0, or the error with which the share
 * failed. *stats gets the statistics of the host's engine. */
int loader_host_close(
	struct loader_host *h, struct refrain_stats *stats, struct error *err);

#endif
