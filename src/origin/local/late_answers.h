/* SPDX-License-Identifier: MIT */
/*
 * Gives answers that must not be given inside the call that starts a request:
 * -ENOMEM for a request without memory (the request itself is the list node),
 * and notes that abandoned reads have ended. One thread per origin.
 */
#ifndef LOCAL_LATE_ANSWERS_H
#define LOCAL_LATE_ANSWERS_H

#include "common/base/thread_pool.h"
#include "origin/origin.h"

struct late;

int late_new(struct late **out);

/* Answer with -ENOMEM, later. Uses the request's priv. */
void late_answer(struct late *l, struct origin_request *q);

/* Does late_answer() hold this request? For the abandon of an origin. */
bool late_has(struct late *l, const struct origin_request *q);

/* Run the job on the thread. It must not block. */
void late_run(struct late *l, struct thread_job *job);

/* Answers the remaining requests first. NULL is allowed. */
void late_free(struct late *l);

#endif
