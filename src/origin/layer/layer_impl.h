/* SPDX-License-Identifier: MIT */
/*
 * A layer: an origin on top of another. Its table of operations has only those
 * that it changes. Layers share code for the handle of a file with its path,
 * for requests in hand, for the copy of a request for the inner origin, and for
 * answers when memory is short.
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
	struct origin base; /* must be first in a layer's struct as well */
	uint32_t magic;
	/* Set once. */
	struct origin_ops ops;
	struct origin *inner;
	struct late *late;
	/* Guards the whole layer. The inner origin is called with the lock held
	 * only to free a file. */
	pthread_mutex_t lock;
	unsigned requests;    /* lock: number in hand */
	pthread_cond_t quiet; /* `requests` has fallen to 0 */
};

static inline struct layer *layer_of(struct origin *o)
{
	return OBJECT(layer, o);
}

/*
 * Put a layer over `inner`, with its traits. `start` is required. Other
 * operations that are NULL in `ops` are passed to the inner origin; a NULL
 * `free` frees the struct after layer_release(). After a failure there is
 * nothing to release.
 */
int layer_init(struct layer *l, const struct origin_ops *ops,
	struct origin *inner, enum lock_name lock);

/*
 * End a layer and its inner origin, except the memory of its struct. Waits at
 * most a second for requests in hand. Returns false if one of them hangs: then
 * everything must stay.
 */
bool layer_release(struct layer *l);

/* -- Handles of files ------------------------------------------------------ */

/* The handle of a file: its path, and the count of its users, so that it can
 * outlive layer_file_free(). The lock guards `refs`: one for the caller, and
 * one for each request that uses the handle. */
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

/* Requires the lock. Call this when a request in hand has ended. */
void layer_request_ended(struct layer *l);

/* A request of any kind: the copy of a request that the inner origin gets. */
union origin_any {
	struct origin_request req; /* the members that all have */
	struct origin_read read;
	struct origin_stat stat;
	struct origin_list list;
};

/* Copy the caller's part of a request, without `priv` and members set by an
 * origin. */
void any_copy(union origin_any *to, struct origin_request *from);
/* Copy the result of a stat, before the request is answered. */
void any_copy_found(struct origin_request *to, const union origin_any *from);
/* The path of a request. The file of a read comes from layer_file_new(). */
const char *any_path(struct origin_request *q);

#endif
