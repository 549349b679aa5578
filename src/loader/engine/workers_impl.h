/* SPDX-License-Identifier: MIT */
/*
 * The workers: the threads that plan, decode and augment. workers_start() and
 * workers_stop() take the turn's lock. Other functions do not take the lock.
 */
#ifndef ENGINE_WORKERS_IMPL_H
#define ENGINE_WORKERS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/echo_factor_impl.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/planner_impl.h"
#include "loader/engine/pool_impl.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings.h"

struct workers;

/* Create as many workers as configured. Returns 0, or -errno with err set. Free
 * *out after a failure, too. */
int workers_new(struct workers **out, const struct engine_parts *parts,
	struct error *err);
/* Free the workers, after workers_stop() or before workers_start(). NULL is
 * allowed. */
void workers_free(struct workers *workers);
/*
 * Start the threads. They call echo_plan() before each run of the planner. All
 * signals are blocked in them, so that the program's own threads handle
 * signals. Returns 0, or -errno with err set.
 */
int workers_start(struct workers *workers, struct error *err);
/* Stop the workers. Call this after outcome_close(). Returns false if a worker
 * does not end in time. */
bool workers_stop(struct workers *workers, uint64_t until_ns);
uint32_t workers_count(const struct workers *workers);
/* Returns the CPU time of the workers so far, in ns. Needs the lock. */
uint64_t workers_cpu_ns(const struct workers *workers);

#endif
