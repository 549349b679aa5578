/* SPDX-License-Identifier: MIT */
/*
 * Records how a run ends (its user closes it, or a failure stops it) and the
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

/* Create an outcome. Needs no lock. Returns 0 or -ENOMEM. */
int outcome_new(struct outcome **out, const struct turn *turn);
void outcome_free(struct outcome *o); /* NULL is allowed */

/* Note that refrain_close() has begun. */
void outcome_close(struct outcome *o);
bool outcome_closing(const struct outcome *o);
/* Like outcome_closing(), but without the lock; sequentially consistent. */
bool outcome_closing_now(const struct outcome *o);

/* Make every call fail with this error from now on. The caller must have set
 * the message. Returns the error. */
int outcome_stop(struct outcome *o, int error);
/* Returns the error that has stopped the run, or 0. */
int outcome_stopped(const struct outcome *o);

/* Return the messages of the last failed call and of the last damaged example.
 * The caller fills them in with error_set(). */
struct error *outcome_message(struct outcome *o);
struct error *outcome_damage(struct outcome *o);
/* Returns the message of the last failed call or, if there is none, of the last
 * damaged example. */
const struct error *outcome_why(const struct outcome *o);

/* Set or get the last failure; its `error` is 0 if there was none. */
void outcome_fail(struct outcome *o, const struct refrain_failure *failure);
/* Begin a call: reset the last failure, unless the run has stopped. */
void outcome_begin_call(struct outcome *o);
const struct refrain_failure *outcome_failure(const struct outcome *o);

#endif
