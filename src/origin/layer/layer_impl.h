/* SPDX-License-Identifier: MIT */
/*
 * A layer: an origin on top of another one, the inner origin. The table of
 * operations of a layer contains only those that it changes. Layers share code
 * for the handle of a file with its path, for counting the requests in
 * progress, for copying a request for the inner origin, and for answers when
 * memory is short.
 */
#ifndef LAYER_LAYER_IMPL_H
#define LAYER_LAYER_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/lock.h"
#include "common/base/magic.h"
#include "origin/local/late_answers.h"
#include "origin/origin.h"

struct layer {
	/* must be the first member, as a layer must be of its own struct */
	struct origin base;
	uint32_t magic;
	/* Set once. */
	struct origin_ops ops;
	struct origin *inner;
	struct late *late;
	/* Guards the whole layer. Of all calls of the inner origin, only the
	 * one that frees a file is made with the lock held. */
	pthread_mutex_t lock;
	unsigned requests; /* guarded by lock: number of requests in progress */
	pthread_cond_t quiet; /* signalled when `requests` has fallen to 0 */
};

static inline struct layer *layer_of(struct origin *o)
{
	return OBJECT(layer, o);
}

/* Put a layer over `inner`, with the traits of `inner`. `start` is required,
 * and a layer without `read_now` reads nothing at once. Other operations that
 * are NULL in `ops` are passed to the inner origin; if `free` is NULL, the
 * struct is freed after layer_release(). After a failure there is nothing to
 * release. */
int layer_init(struct layer *l, const struct origin_ops *ops,
	struct origin *inner, enum lock_name lock);

/* End a layer and its inner origin, but do not free the struct. Waits at most a
 * second for requests in progress. Returns false if one of them hangs: in this
 * case nothing may be freed. */
bool layer_release(struct layer *l);

/* -- Handles of files ------------------------------------------------------ */

/* The handle of a file: its path, and a reference count, so that it can outlive
 * layer_file_free(). The lock guards `refs`: 1 for the caller, and 1 for each
 * request that uses the handle. */
struct origin_file {
	struct origin_file *inner;
	unsigned refs;
	char path[];
};

/* Operations for layers that use this handle. */
struct origin_file *layer_file_new(struct origin *base, const char *path);
void layer_file_free(struct origin *base, struct origin_file *f);
/* Requires the lock. Drop a reference. */
void layer_file_put(struct layer *l, struct origin_file *f);

/* -- Requests -------------------------------------------------------------- */

/* Requires the lock. Call this when a request in progress has ended. */
void layer_request_ended(struct layer *l);

/* A request of any kind. Layers use it for the copy of a request that the inner
 * origin gets. */
union origin_any {
	struct origin_request req; /* the members that all kinds have */
	struct origin_read read;
	struct origin_stat stat;
	struct origin_list list;
};

/* Copy the members of a request that its caller has set, but not `priv` and the
 * members that an origin sets. */
void any_copy(union origin_any *to, struct origin_request *from);
/* Copy the result of a stat, before the request is answered. */
void any_copy_found(struct origin_request *to, const union origin_any *from);
/* Returns the path of a request. In a read, it is that of the file, which
 * layer_file_new() must have created. */
const char *any_path(struct origin_request *q);

#endif
