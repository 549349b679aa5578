/* SPDX-License-Identifier: MIT */
/*
 * A layer: an origin on top of another. Its table of operations names only what
 * it changes. Also what layers have in common: the handle of a file with its
 * path, requests in hand, the copy of a request for the inner origin, and
 * answers for which there was no memory.
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
	struct origin base; /* the first member of a layer's struct, too */
	uint32_t magic;
	/* Set once. */
	struct origin_ops ops;
	struct origin *inner;
	struct late *late;
	/* Guards the whole layer. It is held during a call of `inner` only to
	 * free a file. */
	pthread_mutex_t lock;
	unsigned requests;    /* lock: in hand */
	pthread_cond_t quiet; /* `requests` has fallen to 0 */
};

static inline struct layer *layer_of(struct origin *o)
{
	return OBJECT(layer, o);
}

/*
 * Put a layer over `inner`, with its traits. `start` is required. Other
 * operations that are NULL in `ops` are passed to the inner origin; `free` then
 * frees the struct after layer_release(). On failure nothing is to be released.
 */
int layer_init(struct layer *l, const struct origin_ops *ops,
	struct origin *inner, enum lock_name lock);

/*
 * End a layer and its inner origin, but for the memory of its struct. Waits at
 * most a second for requests in hand. Returns false if one of them hangs: all
 * must stay then.
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

/* Operations of a layer whose files have such a handle. */
struct origin_file *layer_file_new(struct origin *base, const char *path);
void layer_file_free(struct origin *base, struct origin_file *f);
/* Lock held. */
void layer_file_put(struct layer *l, struct origin_file *f);

/* -- Requests -------------------------------------------------------------- */

/* Lock held: a request in hand has ended. */
void layer_request_ended(struct layer *l);

/* A request of any kind: the copy of a request that the inner origin gets. */
union origin_any {
	struct origin_request req; /* the beginning of each */
	struct origin_read read;
	struct origin_stat stat;
	struct origin_list list;
};

/* Copy the caller's part of a request, without `priv` and members set by an
 * origin. */
void any_copy(union origin_any *to, struct origin_request *from);
/* Pass on what a stat found, before it is answered. */
void any_copy_found(struct origin_request *to, const union origin_any *from);
/* The path that a request is about; a read's file is from layer_file_new(). */
const char *any_path(struct origin_request *q);

#endif
