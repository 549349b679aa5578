/* SPDX-License-Identifier: MIT */
/*
 * The changes of the echo factor: as measured, or as a log says. Every function
 * needs the turn's lock, but for those of its life.
 */
#ifndef ENGINE_ECHO_IMPL_H
#define ENGINE_ECHO_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auto/auto.h"
#include "base/err.h"
#include "meter/meter.h"
#include "engine/planner_impl.h"
#include "mount_help/mount_help.h"
#include "pool/pool.h"
#include "schedule/schedule.h"
#include "settings/settings.h"

struct echoes;

struct echo_config {
	const struct settings *s;
	const struct turn *turn;
	struct schedule *schedule;
	struct planner *planner;
	struct meter *meter;
	struct outcome *outcome;
	const struct mount_help *help; /* or NULL */
	uint64_t before; /* changes that were made before this handle */
};

/* -EINVAL or -ESTALE: the log is not valid; -ENOMEM. Any is to be freed, too.
 */
int echo_new(struct echoes **out, const struct echo_config *config,
	struct error *err);
void echo_free(struct echoes *e); /* NULL is allowed */

/* Before the planner runs: change the factor, if it is to be changed. */
void echo_plan(struct echoes *e);
/* A batch was returned and metered. `full`: more is to be read than may be at
 * a time. */
void echo_returned(struct echoes *e, bool full);

/* Changes that were made, also before this handle. */
uint64_t echo_changes(const struct echoes *e);
/* The measured times; false: too little is known so far. */
bool echo_measured(const struct echoes *e, struct auto_part *out);
/* Why the factor is what it is; and what a run needs, see refrain_stats. */
const char *echo_reason(const struct echoes *e, uint64_t *needs_fresh);
/* Implements refrain_echo_log(). */
int echo_print(const struct echoes *e, char *buf, size_t size);

#endif
