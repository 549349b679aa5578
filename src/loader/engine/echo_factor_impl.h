/* SPDX-License-Identifier: MIT */
/*
 * Changes the echo factor, by measured times or by a log. Every function needs
 * the turn's lock, except echo_new() and echo_free().
 */
#ifndef ENGINE_ECHO_FACTOR_IMPL_H
#define ENGINE_ECHO_FACTOR_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/engine/auto.h"
#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/planner_impl.h"
#include "loader/mount_help/mount_help.h"
#include "loader/engine/pool_impl.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings.h"

struct echoes;

/* `before` changes were made before this handle was opened. Returns 0, -EINVAL
 * or -ESTALE if the log is not valid, or -ENOMEM. Free *out after a failure,
 * too. */
int echo_new(struct echoes **out, const struct engine_parts *parts,
	uint64_t before, struct error *err);
void echo_free(struct echoes *e); /* NULL is allowed */

/* Change the factor if necessary. Call this before the planner runs. */
void echo_plan(struct echoes *e);
/* Call this after a batch was returned and metered. `full` says that more reads
 * are waiting than may run at a time. */
void echo_returned(struct echoes *e, bool full);

/* Returns the number of changes so far, including those before this handle. */
uint64_t echo_changes(const struct echoes *e);
/* Get the measured times. Returns false if too little was measured so far. */
bool echo_measured(const struct echoes *e, struct auto_part *out);
/* Returns refrain_stats.echo_reason, and sets *needs_fresh to
 * echo_needs_fresh. */
const char *echo_reason(const struct echoes *e, uint64_t *needs_fresh);
/* Print the log; see refrain_echo_log(). */
int echo_print(const struct echoes *e, char *buf, size_t size);

#endif
