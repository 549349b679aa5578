/* SPDX-License-Identifier: MIT */
/*
 * The run of a share, as the host and each member know it. The *shared stream*
 * has batches of `share_batch`. The *own stream* is that of a job; its batches
 * may be slices of the shared ones. Both are schedules of the same order, so
 * each job can compute the contents of every batch and where to continue when
 * its host dies.
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
	struct refrain_config config; /* of the shared stream, owns its texts */
	struct refrain_config own_config; /* of a lone loader; the same texts */
	struct settings s, own_s;
	struct dataset *dataset;
	uint32_t slices; /* of a shared batch */
	struct share_hello hello;
	void *texts[SHARED_TEXTS]; /* to free */
	uint64_t begin;		   /* the own step to begin with */
	/* Changed under the owner's lock. */
	struct schedule schedule, own;
	uint64_t changes;     /* of the echo factor */
	uint64_t logged_from; /* number of changes before the first one in the
				 log */
	struct share_change *log;
	size_t log_room;
};

int shared_run_init(struct shared_run *run, const struct refrain_config *c,
	struct error *err);
void shared_run_release(struct shared_run *run);
/* The full name: with the rank. */
void shared_run_name(
	const struct refrain_config *c, char name[SHARE_FULL_NAME_MAX]);
/* Open an engine at that step of the shared stream or of the own one. */
int shared_run_open(struct shared_run *run, bool own, uint64_t step,
	const struct slab_place *place, struct batch_source **out,
	struct error *err);
/* Does another job want the same stream? */
int shared_run_check(const struct shared_run *run,
	const struct share_hello *hello, struct error *err);
/* Change the echo factor in both streams. Returns -errno if that is not
 * possible. */
int shared_run_change(
	struct shared_run *run, const struct share_change *change);
/* The number of steps in the own stream that the shared stream covers. */
uint64_t shared_run_steps(const struct shared_run *run);

#endif
