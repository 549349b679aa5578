/* SPDX-License-Identifier: MIT */
/*
 * A loader that shares its batches with other jobs: the public calls on a
 * member of a share. Any thread of the user.
 */
#ifndef SHARED_H
#define SHARED_H

#include "loader/engine/batch.h"
#include "loader/dataset/dataset.h"
#include "loader/core/settings.h"

struct shared;

/* Implement the calls of the loader. */
int shared_open(
	struct shared **out, const struct refrain_config *c, struct error *err);
struct batch_source *shared_source(struct shared *sh);
const struct settings *shared_settings(const struct shared *sh);
const struct dataset *shared_dataset(const struct shared *sh);
uint64_t shared_steps_left(struct shared *sh);
uint64_t shared_step(struct shared *sh);
uint64_t shared_epoch_end(struct shared *sh, uint64_t epoch);
void shared_failure(struct shared *sh, struct refrain_failure *out);
int shared_save(struct shared *sh, void *buf, size_t size);
int shared_save_at(struct shared *sh, uint64_t step, void *buf, size_t size);
int shared_echo_log(struct shared *sh, char *buf, size_t size);
int shared_memory(struct shared *sh, const void **base, size_t *bytes);
void shared_stats(struct shared *sh, struct refrain_stats *out);

#endif
