/* SPDX-License-Identifier: MIT */
/*
 * Hosts a share in this process: the host, and the engine that makes its
 * batches. All functions begin with shared_host_.
 */
#ifndef SHARE_SHARE_HOST_ENGINE_IMPL_H
#define SHARE_SHARE_HOST_ENGINE_IMPL_H

#include <pthread.h>

#include "common/base/magic.h"
#include "loader/share/share_run_impl.h"

struct shared_host {
	uint32_t magic;
	struct share_host *host; /* set once */
	/* Used only by the host's thread. */
	struct shared_run copy; /* a copy with its own schedules and log */
	/* Number of changes before the engine's first step */
	uint64_t begun_changes;
	uint64_t taken_ns; /* time at which the last batch was taken */
	pthread_mutex_t lock;
	/* Guarded by the lock; changed only by the host's thread. NULL if there
	 * is no engine, or it is being closed. */
	struct batch_source *engine;
	/* Guarded by the lock: the engine's final statistics */
	struct refrain_stats last;
};

/* Fill in the rest of the configuration and call share_host_start(). Returns
 * its result, such as -EAGAIN if there is another host. The run must outlive
 * the host. */
int shared_host_start(struct shared_host **out, const struct shared_run *run,
	struct share_host_config *config, struct error *err);
int shared_host_stop(struct shared_host *host);
/* Get the statistics of the host's engine. This also works after the engine has
 * ended. */
void shared_host_stats(struct shared_host *host, struct refrain_stats *out);

#endif
