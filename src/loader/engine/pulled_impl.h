/* SPDX-License-Identifier: MIT */
/*
 * Servings whose samples workers on other hosts make: connects the puller with
 * the pool and the steps, and decides when the loader makes such a sample
 * itself. Every function needs the turn's lock unless its comment says
 * otherwise.
 */
#ifndef ENGINE_PULLED_IMPL_H
#define ENGINE_PULLED_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"

/* Create the puller of an engine if its settings have a service. Needs no lock
 * before threads run. Returns 0, or -errno with err set. */
int pulled_open(struct engine_parts *parts, uint64_t step,
	uint64_t outstanding_max, struct error *err);

/* Should an idle worker make a sample itself that somebody else was to make,
 * because it would come too late? */
bool pulled_is_late(const struct engine_parts *parts);
/* If so, plan it here. Returns false if there is none. */
bool pulled_take_back(const struct engine_parts *parts);

#endif
