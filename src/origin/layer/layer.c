/* SPDX-License-Identifier: MIT */
/* The functions that all layers share. Any thread. */
#include "origin/layer/layer_impl.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/cond.h"

/* -- Operations that a layer does not have --------------------------------- */

static struct origin_file *pass_file_new(struct origin *base, const char *path)
{
	return origin_file_new(layer_of(base)->inner, path);
}

static void pass_file_free(struct origin *base, struct origin_file *f)
{
	origin_file_free(layer_of(base)->inner, f);
}

static void pass_abandon(struct origin *base, struct origin_read *r)
{
	origin_read_abandon(layer_of(base)->inner, r);
}

static bool pass_explain(struct origin *base, int status, struct error *why)
{
	return origin_explain(layer_of(base)->inner, status, why);
}

static bool layer_free(struct origin *base)
{
	if (!layer_release(layer_of(base)))
		return false;
	free(base);
	return true;
}

int layer_init(struct layer *l, const struct origin_ops *ops,
	struct origin *inner, enum lock_name lock)
{
	int rc = late_new(&l->late);

	if (rc < 0)
		return rc;
	MAGIC_BEGIN(l, layer);
	l->inner = inner;
	l->ops = (struct origin_ops){
		.file_new = ops->file_new ? ops->file_new : pass_file_new,
		.file_free = ops->file_free ? ops->file_free : pass_file_free,
		.start = ops->start,
		.read_now = ops->read_now,
		.abandon = ops->abandon ? ops->abandon : pass_abandon,
		.free = ops->free ? ops->free : layer_free,
		.explain = ops->explain ? ops->explain : pass_explain,
	};
	origin_init(&l->base, &l->ops, origin_traits(inner));
	lock_init(&l->lock, lock);
	cond_init(&l->quiet);
	return 0;
}

bool layer_release(struct layer *l)
{
	bool ended;

	pthread_mutex_lock(&l->lock);
	ended = cond_wait_zero(&l->quiet, &l->lock, &l->requests);
	pthread_mutex_unlock(&l->lock);
	/* Otherwise the inner origin still has requests, which use this struct.
	 */
	if (!ended)
		return false;
	late_free(l->late);
	l->late = NULL;
	if (!origin_free(l->inner))
		return false;
	MAGIC_END(l);
	pthread_cond_destroy(&l->quiet);
	pthread_mutex_destroy(&l->lock);
	return true;
}

/* -- Handles of files ------------------------------------------------------ */

struct origin_file *layer_file_new(struct origin *base, const char *path)
{
	size_t size = strlen(path) + 1;
	struct origin_file *f = malloc(sizeof(*f) + size);

	if (!f)
		return NULL;
	memcpy(f->path, path, size);
	f->refs = 1;
	f->inner = origin_file_new(layer_of(base)->inner, path);
	if (!f->inner) {
		free(f);
		return NULL;
	}
	return f;
}

void layer_file_put(struct layer *l, struct origin_file *f)
{
	ASSERT_HELD(&l->lock);
	if (!f || --f->refs > 0)
		return;
	origin_file_free(l->inner, f->inner);
	free(f);
}

void layer_file_free(struct origin *base, struct origin_file *f)
{
	struct layer *l = layer_of(base);

	LOCK_SCOPE(&l->lock);
	layer_file_put(l, f);
}

/* -- Requests -------------------------------------------------------------- */

void layer_request_ended(struct layer *l)
{
	ASSERT_HELD(&l->lock);
	if (--l->requests == 0)
		pthread_cond_broadcast(&l->quiet);
}

void any_copy(union origin_any *to, struct origin_request *from)
{
	if (from->op == ORIGIN_READ) {
		to->read = *origin_read_of(from);
		to->read.lost_bytes = 0;
	} else if (from->op == ORIGIN_STAT) {
		to->stat = *origin_stat_of(from);
	} else {
		to->list = *origin_list_of(from);
	}
	to->req.priv = NULL;
}

void any_copy_found(struct origin_request *to, const union origin_any *from)
{
	if (to->op != ORIGIN_STAT)
		return;
	origin_stat_of(to)->attr = from->stat.attr;
	origin_stat_of(to)->target = from->stat.target;
}

const char *any_path(struct origin_request *q)
{
	if (q->op == ORIGIN_READ)
		return origin_read_of(q)->file->path;
	return q->op == ORIGIN_STAT ? origin_stat_of(q)->path
				    : origin_list_of(q)->path;
}
