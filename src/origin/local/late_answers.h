/* SPDX-License-Identifier: MIT */
/* Gives answers that must not be given during the call that starts a request.
 * One kind is -ENOMEM, for a request for which memory is short; the request
 * itself is the list node. The other kind answers reads that were abandoned.
 * Each origin has one thread for this. */
#ifndef LOCAL_LATE_ANSWERS_H
#define LOCAL_LATE_ANSWERS_H

#include "common/base/thread_pool.h"
#include "origin/origin.h"

struct late;

int late_new(struct late **out);

/* Have the thread answer with -ENOMEM. Uses the request's priv. */
void late_answer(struct late *l, struct origin_request *q);

/* Is this request waiting for the answer of late_answer()? An origin asks this
 * before it handles an abandon. */
bool late_has(struct late *l, const struct origin_request *q);

/* Run the job on the thread. It must not block. */
void late_run(struct late *l, struct thread_job *job);

/* Answer the remaining requests, and free the struct. NULL is allowed. */
void late_free(struct late *l);

#endif
