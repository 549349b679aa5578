/* SPDX-License-Identifier: MIT */
/*
 * Records how a run ends, closed by its user or stopped by a failure, and the
 * messages of failures. Every function needs the turn's lock unless its comment
 * says otherwise.
 */
#ifndef ENGINE_OUTCOME_IMPL_H
#define ENGINE_OUTCOME_IMPL_H

#include <refrain/loader.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "loader/core/turn.h"

struct outcome;

/* Without the lock. -ENOMEM. */
int outcome_new(struct outcome **out, const struct turn *turn);
void outcome_free(struct outcome *o); /* NULL is allowed */

/* refrain_close() has begun. */
void outcome_close(struct outcome *o);
bool outcome_closing(const struct outcome *o);
/* The same without the lock; sequentially consistent. */
bool outcome_closing_now(const struct outcome *o);

/* Every call fails from now on, for the reason that the message gives. Returns
 * the error. */
int outcome_stop(struct outcome *o, int error);
/* Returns that error, or 0. */
int outcome_stopped(const struct outcome *o);

/* Messages to fill in with error_set(): of the last failed call, and of the
 * last damaged example. */
struct error *outcome_message(struct outcome *o);
struct error *outcome_damage(struct outcome *o);
/* Returns the message of the last call or, without one, of the last damage. */
const struct error *outcome_why(const struct outcome *o);

/* The last failure. `error` 0: there was none. */
void outcome_fail(struct outcome *o, const struct refrain_failure *failure);
/* A call begins: it has not failed, unless the run has stopped. */
void outcome_begin_call(struct outcome *o);
const struct refrain_failure *outcome_failure(const struct outcome *o);

#endif
