/* SPDX-License-Identifier: MIT */
/*
 * Functions of the library that only the commands use, in addition to its
 * public header: they host a share without consuming its batches.
 */
#ifndef SHARE_HOST_SERVE_H
#define SHARE_HOST_SERVE_H

#include <refrain/loader.h>

#include "common/base/err.h"

struct loader_host;

/*
 * Host the share of the configuration until its last job has left. The first
 * batch is made when share_jobs jobs have joined. Returns 0, -EEXIST if the
 * share has a host, or an error as refrain_open() does.
 */
int loader_host_open(struct loader_host **out,
	const struct refrain_config *config, struct error *err);
/* Returns a descriptor that polls readable when the share has ended. */
int loader_host_fd(const struct loader_host *h);
/* End the share and free the host. Returns 0, or the error with which the share
 * has failed. *stats is set to the statistics of the host's engine. */
int loader_host_close(
	struct loader_host *h, struct refrain_stats *stats, struct error *err);

#endif
