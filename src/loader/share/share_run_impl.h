/* SPDX-License-Identifier: MIT */
/*
 * The run of a share as the host and each member know it. The *shared stream*
 * has batches of `share_batch` examples. Each job has its *own stream*, whose
 * batches may be slices of the shared ones. Both streams have the same order of
 * examples. So each job can compute the contents of every batch, and where to
 * continue when its host dies.
 */
#ifndef SHARE_SHARE_RUN_IMPL_H
#define SHARE_SHARE_RUN_IMPL_H

#include "loader/engine/engine.h"
#include "loader/share/share.h"

enum shared_text {
	SHARED_DATASET,
	SHARED_ROOT,
	SHARED_ECHO_LOG,
	SHARED_FIELDS,
	SHARED_ANNOTATIONS,
	SHARED_CPUS,
	SHARED_TEXTS
};

struct shared_run {
	/* Set once. */
	/* For the shared stream; its strings are in `texts` */
	struct refrain_config config;
	/* For a loader with the own stream; it has the same strings */
	struct refrain_config own_config;
	struct settings s, own_s;
	struct dataset *dataset;
	struct mixture *mixture; /* of `schedule` and `own`; NULL: no mix */
	uint32_t slices;	 /* number of slices in a shared batch */
	struct share_hello hello;
	void *texts[SHARED_TEXTS]; /* strings to free */
	uint64_t begin;		   /* the first step in the own stream */
	/* Changed under the lock of the owner. */
	struct schedule schedule, own;
	uint64_t changes; /* number of changes of the echo factor */
	/* Number of changes before the first change in the log. */
	uint64_t logged_from;
	struct share_change *log;
	size_t log_room;
};

int shared_run_init(struct shared_run *run, const struct refrain_config *c,
	struct error *err);
void shared_run_release(struct shared_run *run);
/* Get the full name of the share, which contains rank and world. */
void shared_run_name(
	const struct refrain_config *c, char name[SHARE_FULL_NAME_MAX]);
/* Open an engine at this step of the shared stream or, with `own`, of the own
 * stream. */
int shared_run_open(struct shared_run *run, bool own, uint64_t step,
	const struct slab_place *place, struct batch_source **out,
	struct error *err);
/* Check that another job, which has sent `hello`, has the same stream. Returns
 * 0, or -errno with a message. */
int shared_run_check(const struct shared_run *run,
	const struct share_hello *hello, struct error *err);
/* Change the echo factor in both streams. Returns 0, or -errno if the schedules
 * refuse the change. */
int shared_run_change(
	struct shared_run *run, const struct share_change *change);
/* Returns the number of steps in the own stream that the shared stream
 * covers. */
uint64_t shared_run_steps(const struct shared_run *run);

#endif
