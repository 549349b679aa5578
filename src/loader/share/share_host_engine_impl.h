/* SPDX-License-Identifier: MIT */
/*
 * Hosts a share in this process: the host, and the engine that makes its
 * batches. Functions begin with shared_host_.
 */
#ifndef SHARE_SHARE_HOST_ENGINE_IMPL_H
#define SHARE_SHARE_HOST_ENGINE_IMPL_H

#include <pthread.h>

#include "common/base/magic.h"
#include "loader/share/share_run_impl.h"

struct shared_host {
	uint32_t magic;
	struct share_host *host; /* set once */
	/* Used by the host's thread only. */
	struct shared_run copy; /* with schedules and a log of its own */
	uint64_t begun_changes; /* number of changes before the engine began */
	uint64_t taken_ns;	/* when the last batch was taken */
	pthread_mutex_t lock;
	/* Lock: changed by the host's thread. NULL if there is no engine, or it
	 * is being closed. */
	struct batch_source *engine;
	struct refrain_stats last; /* lock: statistics at the engine's end */
};

/* Fill in the rest of the configuration and call share_host_start(). Returns
 * -EAGAIN if there is another host. The run must outlive the host. */
int shared_host_start(struct shared_host **out, const struct shared_run *run,
	struct share_host_config *config, struct error *err);
int shared_host_stop(struct shared_host *host);
/* The statistics of the host's engine, even after it has ended. */
void shared_host_stats(struct shared_host *host, struct refrain_stats *out);

#endif
