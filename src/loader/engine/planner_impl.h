/* SPDX-License-Identifier: MIT */
/*
 * The planner walks along the schedule: it creates steps, and names fresh
 * examples further ahead to the reader. Any worker runs it, one at a time.
 * Every function needs the turn's lock, except planner_new(), which takes it,
 * and planner_free().
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

/* Returns -EBADMSG if the first step of this handle is after the end of the
 * run, or -ENOMEM. Free *out after a failure, too. */
int planner_new(struct planner **out, const struct engine_parts *parts,
	uint64_t first_step, struct error *err);
void planner_free(struct planner *p); /* NULL is allowed */

/* Is there something to plan now? */
bool planner_wants(const struct planner *p);
/* Plan a little. Releases the lock meanwhile. */
void planner_run(struct planner *p);

/* The number of steps in the run. */
uint64_t planner_steps(const struct planner *p);
/* Are all steps planned? */
bool planner_at_end(const struct planner *p);
/* Fresh numbers below planner_planned_fresh() are planned; those below
 * planner_read_fresh() have been named to the reader. */
uint64_t planner_planned_fresh(const struct planner *p);
uint64_t planner_read_fresh(const struct planner *p);
/* Was every example of the run named to the reader? */
bool planner_read_all(const struct planner *p);

/* The schedule has changed: apply it to examples that are not planned yet. */
void planner_look_again(struct planner *p);

#endif
