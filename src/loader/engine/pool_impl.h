/* SPDX-License-Identifier: MIT */
/*
 * Includes the headers of the parts that hold the data of a run: unfinished
 * batches, the pool of originals, the memory for both, and the outcome. Each
 * part is described in its own header.
 */
#ifndef ENGINE_POOL_IMPL_H
#define ENGINE_POOL_IMPL_H

#include "loader/engine/damage_impl.h"
#include "loader/engine/originals_impl.h"
#include "loader/engine/outcome_impl.h"
#include "loader/engine/budget_impl.h"
#include "loader/engine/steps_impl.h"

#endif
