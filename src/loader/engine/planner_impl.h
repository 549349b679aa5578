/* SPDX-License-Identifier: MIT */
/*
 * The planner walks along the schedule: it creates steps, and names further
 * fresh examples to the reader. Any worker calls it, one at a time. Every
 * function needs the turn's lock, except planner_new(), which takes it, and
 * planner_free().
 */
#ifndef ENGINE_PLANNER_IMPL_H
#define ENGINE_PLANNER_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/pool_impl.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings.h"

struct planner;

/* Returns 0, -EBADMSG if the first step of this handle is after the end of the
 * run, or -ENOMEM. Free *out after a failure, too. */
int planner_new(struct planner **out, const struct engine_parts *parts,
	uint64_t first_step, struct error *err);
void planner_free(struct planner *p); /* NULL is allowed */

/* Does the planner have work to do? */
bool planner_wants(const struct planner *p);
/* Do a small part of the planner's work. Releases the lock while it queries the
 * schedule and the dataset. */
void planner_run(struct planner *p);

/* Does a worker run the planner now? */
bool planner_is_busy(const struct planner *p);

/* Returns the number of steps in the run. */
uint64_t planner_steps(const struct planner *p);
/* Were all steps planned? */
bool planner_at_end(const struct planner *p);
/* Fresh examples below planner_planned_fresh() are planned. Those below
 * planner_read_fresh() were named to the reader. */
uint64_t planner_planned_fresh(const struct planner *p);
uint64_t planner_read_fresh(const struct planner *p);
/* Was every example of the run named to the reader? */
bool planner_read_all(const struct planner *p);

/* Call this when the schedule has changed: it applies the change to examples
 * that are not planned yet. */
void planner_look_again(struct planner *p);

#endif
