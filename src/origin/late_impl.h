/* SPDX-License-Identifier: MIT */
/*
 * Answers that cannot be given from within the call that asks: -ENOMEM to a
 * request for which there was no memory (the request itself holds the list),
 * and notes that abandoned reads are over. One thread an origin.
 */
#ifndef ORIGIN_LATE_IMPL_H
#define ORIGIN_LATE_IMPL_H

#include "base/pool.h"
#include "origin/origin.h"

struct late;

int late_new(struct late **out);

/* Answer with -ENOMEM, later. Uses the request's priv. */
void late_answer(struct late *l, struct origin_request *q);

/* Whether late_answer() has this one in hand; for abandon(). */
bool late_has(struct late *l, const struct origin_request *q);

/* Run the job on the thread. It must not block. */
void late_run(struct late *l, struct pool_job *job);

/* Answers what is left first. NULL is allowed. */
void late_free(struct late *l);

#endif
