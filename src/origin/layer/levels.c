/* SPDX-License-Identifier: MIT */
/*
 * An origin that shows a level of each progressive JPEG: the prefix that lacks
 * the lowest bits, with an end marker. The levels come from an index. A file
 * without a level, or whose version differs from the index, is shown whole. The
 * root has a file recode.json that names the level, so that a reader can tell
 * which rendition of a dataset it sees. This file hides the dataset's own file
 * of that name.
 *
 * A request of the inner origin is a copy. Its struct is freed when it has been
 * answered and no call of the inner origin uses it any more.
 */
#include "origin/origin.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "common/format/rendition.h"
#include "origin/layer/layer_impl.h"
#include "origin/layer/named_impl.h"

#define LEVELS_BATCH 64u

/* A file that is shown as a prefix. */
struct level {
	struct hash128 path;
	/* The version at the source. A time or tag of 0 stands for any. */
	struct file_version source;
	uint64_t end; /* length of the prefix */
};

struct levels {
	struct layer layer;
	/* All set once. */
	struct counters *counters;
	struct array level; /* sorted by path */
	char rendition[128];
	struct file_attr rendition_attr;
	/* tag of the root's version; 0: that version is not changed */
	uint64_t tag;
};

/* A request to the inner origin, or one that is answered without it. */
struct level_request {
	struct thread_job job;
	struct levels *o;
	struct origin_request *outer; /* set once */
	/* Number of users, guarded by the lock: 1 until the request is
	 * answered, and 1 for each call of the inner origin. */
	unsigned refs;
	/* Guarded by the lock. passed: the inner origin has the request.
	 * abandoned: the request must be abandoned. */
	bool passed, abandoned;
	/* The end of the prefix to which a read belongs; 0: the whole file. */
	uint64_t end;
	struct file_attr attr;
	union origin_any in;
};

static struct levels *levels_of(struct origin *o)
{
	return (struct levels *)(void *)layer_of(o);
}

/* -- Versions -------------------------------------------------------------- */

static int level_compare(const void *a, const void *b)
{
	const struct level *x = a, *y = b;

	return memcmp(&x->path, &y->path, sizeof(x->path));
}

static const struct level *level_known(const struct levels *o, const char *path)
{
	struct level key = {.path = hash128(path, strlen(path))};
	size_t n = array_count(&o->level, sizeof(key));

	return n == 0 ? NULL
		      : bsearch(&key, array_data(&o->level), n, sizeof(key),
				level_compare);
}

static uint64_t level_size(const struct level *l)
{
	return l->end + sizeof(jpeg_end_marker);
}

static bool is_source(const struct level *l, struct file_version v)
{
	return v.size_bytes == l->source.size_bytes &&
		(!l->source.mtime_ns || v.mtime_ns == l->source.mtime_ns) &&
		(!l->source.tag || v.tag == l->source.tag);
}

static bool is_shown(const struct level *l, struct file_version v)
{
	v.size_bytes = v.size_bytes == level_size(l) ? l->source.size_bytes : 0;
	return is_source(l, v);
}

/* Change the version of a name at the source into the one that is shown. */
static void level_show(
	const struct levels *o, const char *path, struct file_attr *attr)
{
	const struct level *l =
		attr->kind == KIND_FILE ? level_known(o, path) : NULL;

	if (l && is_source(l, attr->version))
		attr->version.size_bytes = level_size(l);
	if (!*path && o->tag)
		attr->version.tag = o->tag;
}

/* -- Requests -------------------------------------------------------------- */

static void request_put(struct level_request *q)
{
	struct layer *l = &q->o->layer;

	ASSERT_HELD(&l->lock);
	if (--q->refs > 0)
		return;
	free(q);
	layer_request_ended(l);
}

/* Answer a request, which may free q. */
static void request_tell(struct level_request *q, int status)
{
	struct layer *l = &q->o->layer;

	pthread_mutex_lock(&l->lock);
	q->outer->priv = NULL;
	pthread_mutex_unlock(&l->lock);
	origin_answer(q->outer, status);
	pthread_mutex_lock(&l->lock);
	request_put(q);
	pthread_mutex_unlock(&l->lock);
}

/* -- Reads ----------------------------------------------------------------- */

static void level_bytes(
	struct origin_read *in, uint64_t off, const void *bytes, size_t len)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.read);
	struct origin_read *r = origin_read_of(q->outer);

	/* A read of the end marker alone asks for the byte before it. */
	if (off >= r->off)
		r->data(r, off, bytes, len);
}

static void level_read_done(struct origin_request *in, int status)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.req);
	struct origin_read *r = origin_read_of(q->outer);
	uint64_t from = r->off > q->end ? r->off : q->end;

	r->lost_bytes = q->in.read.lost_bytes;
	if (status == 0 && q->end && r->off + r->len > from)
		r->data(r, from, jpeg_end_marker + (from - q->end),
			(size_t)(r->off + r->len - from));
	request_tell(q, status);
}

/* Have the inner origin read the part of the range that is before the end. */
static void make_read(struct level_request *q)
{
	struct origin_read *in = &q->in.read;
	const struct level *l = level_known(q->o, in->file->path);

	in->file = in->file->inner;
	in->req.done = level_read_done;
	in->data = level_bytes;
	if (!l || !is_shown(l, in->want)) {
		if (in->off == 0)
			COUNT(q->o->counters, files_whole);
		return;
	}
	if (in->off == 0)
		COUNT(q->o->counters, files_shortened);
	q->end = l->end;
	in->want.size_bytes = l->source.size_bytes;
	if (in->off >= q->end) {
		in->off = q->end - 1;
		in->len = 1;
	} else if (in->off + in->len > q->end) {
		in->len = (size_t)(q->end - in->off);
	}
}

/* -- Names ----------------------------------------------------------------- */

static void level_stat_done(struct origin_request *in, int status)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.req);
	struct origin_stat *s = origin_stat_of(q->outer);

	if (status == 0) {
		q->attr = *q->in.stat.attr;
		level_show(q->o, s->path, &q->attr);
		s->attr = &q->attr;
		s->target = q->in.stat.target;
	}
	request_tell(q, status);
}

static void make_stat(struct level_request *q)
{
	struct origin_stat *in = &q->in.stat;
	const struct level *l = level_known(q->o, in->path);

	in->req.done = level_stat_done;
	if (l && is_shown(l, in->known))
		in->known.size_bytes = l->source.size_bytes;
}

static bool is_rendition(const char *dir, const char *name)
{
	return !*dir && strcmp(name, RENDITION_FILE) == 0;
}

static void level_batch(
	struct origin_list *in, const struct file_entry *entries, size_t n)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.list);
	struct origin_list *l = origin_list_of(q->outer);
	struct file_entry shown[LEVELS_BATCH];
	char path[2 * PATH_MAX];
	size_t filled = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_rendition(l->path, entries[i].name))
			continue;
		(void)snprintf(path, sizeof(path), "%s%s%s", l->path,
			*l->path ? "/" : "", entries[i].name);
		shown[filled] = entries[i];
		level_show(q->o, path, &shown[filled++].attr);
		if (filled == LEVELS_BATCH || i + 1 == n) {
			l->batch(l, shown, filled);
			filled = 0;
		}
	}
	if (filled > 0)
		l->batch(l, shown, filled);
}

static void level_restart(struct origin_list *in)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.list);
	struct origin_list *l = origin_list_of(q->outer);

	l->restart(l);
}

static void level_listed(struct origin_request *in, int status)
{
	struct level_request *q =
		CONTAINER_OF(in, struct level_request, in.req);
	struct origin_list *l = origin_list_of(q->outer);
	struct file_entry rendition = {
		.name = RENDITION_FILE, .attr = q->o->rendition_attr};

	if (status == 0 && !*l->path)
		l->batch(l, &rendition, 1);
	request_tell(q, status);
}

static void make_list(struct level_request *q)
{
	q->in.req.done = level_listed;
	q->in.list.batch = level_batch;
	q->in.list.restart = level_restart;
}

/* -- The file that names the level ----------------------------------------- */

static void run_rendition(struct thread_job *job)
{
	struct level_request *q = CONTAINER_OF(job, struct level_request, job);
	const struct levels *o = q->o;
	struct origin_read *r;

	if (q->outer->op == ORIGIN_STAT) {
		origin_stat_of(q->outer)->attr = &o->rendition_attr;
		origin_stat_of(q->outer)->target = NULL;
		request_tell(q, 0);
		return;
	}
	r = origin_read_of(q->outer);
	if (!version_equal(r->want, o->rendition_attr.version)) {
		request_tell(q, -ESTALE);
		return;
	}
	r->lost_bytes = 0;
	r->data(r, r->off, o->rendition + r->off, r->len);
	request_tell(q, 0);
}

static void rendition_make(struct levels *o, unsigned drop_bits, uint64_t hash)
{
	size_t n = (size_t)snprintf(o->rendition, sizeof(o->rendition),
		"{\"refrain_recode\":1,\"rendition\":\"drop-bits=%u "
		"levels=%016" PRIx64 "\"}\n",
		drop_bits, hash);

	o->rendition_attr = (struct file_attr){
		.version = {.size_bytes = n, .tag = hash ? hash : 1},
		.kind = KIND_FILE,
		.mode = 0444,
		.uid = geteuid(),
		.gid = getegid(),
	};
}

/* -- The table ------------------------------------------------------------- */

static void request_pass(struct level_request *q)
{
	struct layer *l = &q->o->layer;

	origin_start(l->inner, &q->in.req);
	pthread_mutex_lock(&l->lock);
	q->passed = true;
	if (q->abandoned) {
		pthread_mutex_unlock(&l->lock);
		origin_read_abandon(l->inner, &q->in.read);
		pthread_mutex_lock(&l->lock);
	}
	request_put(q);
	pthread_mutex_unlock(&l->lock);
}

static void levels_begin(struct origin *base, struct origin_request *outer)
{
	struct levels *o = levels_of(base);
	struct level_request *q = calloc(1, sizeof(*q));
	bool rendition =
		outer->op != ORIGIN_LIST && is_rendition("", any_path(outer));

	if (!q) {
		late_answer(o->layer.late, outer);
		return;
	}
	q->o = o;
	q->outer = outer;
	q->refs = rendition ? 1 : 2;
	pthread_mutex_lock(&o->layer.lock);
	o->layer.requests++;
	outer->priv = rendition ? NULL : q;
	pthread_mutex_unlock(&o->layer.lock);
	if (rendition) {
		thread_job_init(&q->job, run_rendition);
		late_run(o->layer.late, &q->job);
		return;
	}
	any_copy(&q->in, outer);
	if (outer->op == ORIGIN_READ)
		make_read(q);
	else if (outer->op == ORIGIN_STAT)
		make_stat(q);
	else
		make_list(q);
	request_pass(q);
}

/* A read of the file that names the level is answered at once, so there is
 * nothing to give up. */
static void levels_abandon(struct origin *base, struct origin_read *r)
{
	struct levels *o = levels_of(base);
	struct level_request *q;

	if (late_has(o->layer.late, &r->req))
		return;
	pthread_mutex_lock(&o->layer.lock);
	q = r->req.priv;
	if (q && !q->passed) {
		q->abandoned = true;
	} else if (q) {
		q->refs++;
		pthread_mutex_unlock(&o->layer.lock);
		origin_read_abandon(o->layer.inner, &q->in.read);
		pthread_mutex_lock(&o->layer.lock);
		request_put(q);
	}
	pthread_mutex_unlock(&o->layer.lock);
}

static bool levels_free(struct origin *base)
{
	struct levels *o = levels_of(base);

	if (!layer_release(&o->layer))
		return false;
	array_release(&o->level);
	free(o);
	return true;
}

static const struct origin_ops levels_ops = {
	.file_new = layer_file_new,
	.file_free = layer_file_free,
	.start = levels_begin,
	.abandon = levels_abandon,
	.free = levels_free,
};

/* Keep the files of the index that have a level. */
static int levels_parse(struct levels *o, const struct origin_levels_config *c,
	struct error *err)
{
	CLEANUP_FREE struct index_lines *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return error_set(err, -ENOMEM, "%m");
	x->at = c->text;
	x->end = c->text + c->bytes;
	while ((rc = index_lines_next(x, err)) > 0) {
		struct level *l;

		if (x->level[c->drop_bits - 1] == 0)
			continue;
		l = array_grow(&o->level, sizeof(*l));
		if (!l)
			return error_set(err, -ENOMEM, "%m");
		*l = (struct level){.path = hash128(x->path, strlen(x->path)),
			.source = x->version,
			.end = x->level[c->drop_bits - 1]};
	}
	if (rc == 0 && !x->has_levels)
		rc = error_set(err, -EBADMSG,
			"it has no levels; make it with 'refrain index "
			"--levels'");
	if (rc == 0 && array_bytes(&o->level) > 0)
		qsort(array_data(&o->level),
			array_count(&o->level, sizeof(struct level)),
			sizeof(struct level), level_compare);
	return rc;
}

int origin_levels_new(struct origin **out, struct origin *inner,
	const struct origin_levels_config *config, struct error *err)
{
	CLEANUP_FREE struct levels *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return error_set(err, -ENOMEM, "%m");
	o->counters = config->counters;
	o->tag = config->root_tag;
	rendition_make(o, config->drop_bits,
		hash64(config->text, config->bytes, config->drop_bits));
	rc = levels_parse(o, config, err);
	if (rc == 0) {
		rc = layer_init(&o->layer, &levels_ops, inner, RANK_LEVELS);
		if (rc < 0)
			(void)error_set(err, rc, "cannot start a thread: %m");
	}
	if (rc < 0) {
		array_release(&o->level);
		return rc;
	}
	*out = &steal_ptr(&o)->layer.base;
	return 0;
}
