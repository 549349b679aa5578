/* SPDX-License-Identifier: MIT */
/*
 * The run of a share, as the host and each member know it. The *shared stream*
 * has batches of `share_batch`. Each job has its *own stream*, whose batches
 * may be slices of the shared ones. Both streams have the same order, so each
 * job can compute the contents of every batch, and where to continue when its
 * host dies.
 */
#ifndef SHARE_SHARE_RUN_IMPL_H
#define SHARE_SHARE_RUN_IMPL_H

#include "loader/engine/engine.h"
#include "loader/share/share.h"

enum shared_text {
	SHARED_DATASET,
	SHARED_ROOT,
	SHARED_ECHO_LOG,
	SHARED_CPUS,
	SHARED_TEXTS
};

struct shared_run {
	/* Set once. */
	/* Of the shared stream; texts are in `texts` */
	struct refrain_config config;
	/* Of a loader for the own stream; the same texts */
	struct refrain_config own_config;
	struct settings s, own_s;
	struct dataset *dataset;
	uint32_t slices; /* slices in a shared batch */
	struct share_hello hello;
	void *texts[SHARED_TEXTS]; /* to free */
	uint64_t begin;		   /* first step, in the own stream */
	/* Changed under the owner's lock. */
	struct schedule schedule, own;
	uint64_t changes; /* of the echo factor */
	/* Number of changes before the first one in the log. */
	uint64_t logged_from;
	struct share_change *log;
	size_t log_room;
};

int shared_run_init(struct shared_run *run, const struct refrain_config *c,
	struct error *err);
void shared_run_release(struct shared_run *run);
/* Get the full name of the share, which includes the rank. */
void shared_run_name(
	const struct refrain_config *c, char name[SHARE_FULL_NAME_MAX]);
/* Open an engine at that step of the shared stream or, with `own`, of the own
 * stream. */
int shared_run_open(struct shared_run *run, bool own, uint64_t step,
	const struct slab_place *place, struct batch_source **out,
	struct error *err);
/* Check that another job, which sent `hello`, wants the same stream. */
int shared_run_check(const struct shared_run *run,
	const struct share_hello *hello, struct error *err);
/* Change the echo factor in both streams. Returns -errno if the schedules
 * refuse the change. */
int shared_run_change(
	struct shared_run *run, const struct share_change *change);
/* The number of steps in the own stream that the shared stream covers. */
uint64_t shared_run_steps(const struct shared_run *run);

#endif
