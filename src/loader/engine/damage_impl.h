/* SPDX-License-Identifier: MIT */
/*
 * Handles examples that cannot be read or decoded: it counts them, and applies
 * the configured policy.
 */
#ifndef ENGINE_DAMAGE_IMPL_H
#define ENGINE_DAMAGE_IMPL_H

#include "loader/dataset/dataset.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/outcome_impl.h"
#include "loader/engine/originals_impl.h"
#include "loader/core/settings.h"

/*
 * Handle an original whose bytes cannot be used: substitute another example,
 * mark the original as failed, or stop the run. `stage` and `what` are for the
 * message. Needs the turn's lock.
 */
void damage_fail(const struct engine_parts *parts, struct original *o,
	int error, const char *stage, const char *what);

#endif
