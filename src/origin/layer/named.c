/* SPDX-License-Identifier: MIT */
/*
 * An origin whose names come from an index and whose bytes come from the inner
 * origin. The index is read again for each listing. Only the first listing uses
 * the index that was checked at the start. Listings and answers are jobs of a
 * small pool; reads go straight to the inner origin.
 *
 * A request for a name that comes before the end of the first listing waits
 * until then in the list `parked`, which is linked by priv.
 */
#include "origin/origin.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "common/base/thread_pool.h"
#include "origin/layer/layer_impl.h"
#include "origin/layer/named_impl.h"

#define NAMED_THREADS 2u
#define NAMED_BATCH 256u
#define NAMED_SAMPLES 3u
#define NAMED_WAIT_NS (UINT64_C(60) * NS_PER_S)
/* If the index of a mount is wrong, the mount has to fail within 5 s. */
#define NAMED_LOOK_NS (9 * NS_PER_S / 2)

struct named {
	struct layer layer;
	/* Set once. */
	struct origin_named_config config;
	struct thread_pool *pool;
	uid_t uid;
	gid_t gid;
	/* The members below are guarded by the layer's lock. */
	char *text; /* the checked text for the first listing, or NULL */
	size_t bytes;
	uint64_t tag; /* tag of the text that was last listed or checked */
	bool due;     /* the first listing has not begun yet */
	struct origin_request *parked;
};

/* A request in progress; `in` is the copy for the inner origin. */
struct named_job {
	struct thread_job job;
	struct named *o;
	struct origin_request *outer;
	struct file_attr known;
	union origin_any in;
};

static struct named *named_of(struct origin *o)
{
	return (struct named *)(void *)layer_of(o);
}

static struct file_attr named_attr(
	const struct named *o, enum file_kind kind, struct file_version version)
{
	return (struct file_attr){
		.version = version,
		.kind = kind,
		.mode = kind == KIND_DIR ? 0555 : 0444,
		.uid = o->uid,
		.gid = o->gid,
	};
}

static void stat_answer(
	struct origin_request *q, const struct file_attr *attr, int status)
{
	struct origin_stat *s = origin_stat_of(q);

	s->attr = attr;
	s->target = NULL;
	origin_answer(q, status);
}

/* Compare the version in the index with that of the file. If the index has no
 * tag or time, any tag or time is right. */
static void named_stat_done(struct origin_request *q, int status)
{
	struct named_job *j = CONTAINER_OF(q, struct named_job, in.req);
	struct origin_request *outer = j->outer;
	struct file_attr attr;

	if (status == 0) {
		struct file_version v = j->in.stat.attr->version;

		v.tag = j->known.version.tag ? v.tag : 0;
		v.mtime_ns = j->known.version.mtime_ns ? v.mtime_ns : 0;
		attr = named_attr(j->o, j->in.stat.attr->kind, v);
	}
	free(j);
	stat_answer(outer, status == 0 ? &attr : NULL, status);
}

static bool named_park(struct named *o, struct origin_request *q)
{
	LOCK_SCOPE(&o->layer.lock);

	if (!o->due)
		return false;
	q->priv = o->parked;
	o->parked = q;
	return true;
}

static void named_run_stat(struct thread_job *job)
{
	struct named_job *j = CONTAINER_OF(job, struct named_job, job);
	struct named *o = j->o;
	struct origin_request *q = j->outer;
	const char *path = origin_stat_of(q)->path;
	struct file_attr attr;

	if (*path && !o->config.known(o->config.arg, path, &j->known)) {
		free(j);
		if (!named_park(o, q))
			stat_answer(q, NULL, -ENOENT);
		return;
	}
	if (*path && j->known.kind == KIND_FILE) {
		any_copy(&j->in, q);
		j->in.req.done = named_stat_done;
		origin_start(o->layer.inner, &j->in.req);
		return;
	}
	free(j);
	attr = named_attr(o, KIND_DIR, (struct file_version){0});
	if (!*path) {
		pthread_mutex_lock(&o->layer.lock);
		attr.version.tag = o->tag;
		pthread_mutex_unlock(&o->layer.lock);
	}
	stat_answer(q, &attr, 0);
}

/* -- Listings -------------------------------------------------------------- */

/* A batch of entries that is being filled; `text` has their names. */
struct named_batch {
	const struct named *o;
	struct origin_list *l;
	size_t n, used;
	/* any: there is something below the path; is_file: the path is a file
	 */
	bool any, is_file;
	struct file_entry entry[NAMED_BATCH];
	char text[8 * PATH_MAX];
	/* name of the directory that was added last: many names in a row are in
	 * one directory, which must be added only once */
	char last[NAME_MAX + 1];
};

static void batch_send(struct named_batch *b)
{
	if (b->n > 0)
		b->l->batch(b->l, b->entry, b->n);
	b->n = b->used = 0;
}

static void batch_add(struct named_batch *b, const char *name, size_t len,
	enum file_kind kind, struct file_version version)
{
	if (b->n == NAMED_BATCH || sizeof(b->text) - b->used <= len)
		batch_send(b);
	memcpy(b->text + b->used, name, len);
	b->text[b->used + len] = '\0';
	b->entry[b->n++] = (struct file_entry){
		.name = b->text + b->used,
		.attr = named_attr(b->o, kind, version),
	};
	b->used += len + 1;
}

/* Returns the part of a path below the listed directory, or NULL. */
static const char *named_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 0)
		return path;
	return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1
							    : NULL;
}

static void batch_name(
	struct named_batch *b, const char *name, struct file_version version)
{
	const char *slash = b->l->deep ? NULL : strchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : strlen(name);

	if (!slash) {
		batch_add(b, name, len, KIND_FILE, version);
		return;
	}
	if (len > NAME_MAX ||
		(strncmp(b->last, name, len) == 0 && !b->last[len]))
		return;
	memcpy(b->last, name, len);
	b->last[len] = '\0';
	batch_add(b, name, len, KIND_DIR, (struct file_version){0});
}

static int named_deliver(const struct named *o, struct origin_list *l,
	const char *text, size_t bytes, struct error *err)
{
	CLEANUP_FREE struct index_lines *x = calloc(1, sizeof(*x));
	CLEANUP_FREE struct named_batch *b = calloc(1, sizeof(*b));
	int rc;

	if (!x || !b)
		return error_set(err, -ENOMEM, "%m");
	b->o = o;
	b->l = l;
	x->at = text;
	x->end = text + bytes;
	while ((rc = index_lines_next(x, err)) > 0) {
		const char *name = named_below(x->path, l->path);

		if (name)
			batch_name(b, name, x->version);
		b->any |= name != NULL;
		b->is_file |= !name && strcmp(x->path, l->path) == 0;
	}
	if (rc == 0)
		batch_send(b);
	if (rc == 0 && !b->any && *l->path)
		rc = b->is_file ? -ENOTDIR : -ENOENT;
	return rc;
}

/* Get the text for a listing: for the first one the text that was checked, for
 * later ones the current index. */
static int named_text(
	struct named *o, char **text, size_t *bytes, struct error *err)
{
	pthread_mutex_lock(&o->layer.lock);
	*text = steal_ptr(&o->text);
	*bytes = o->bytes;
	pthread_mutex_unlock(&o->layer.lock);
	/* -EIO, because the caller would think that -ENOENT or -ENOTDIR is
	 * about the path that it lists. */
	if (!*text && o->config.load(o->config.arg, text, bytes, err) < 0)
		return -EIO;
	return 0;
}

/* The first listing has ended: continue with all requests that waited for it.
 */
static void named_listed(struct named *o, int status)
{
	struct origin_request *q, *next;

	pthread_mutex_lock(&o->layer.lock);
	o->due &= status < 0;
	q = steal_ptr(&o->parked);
	pthread_mutex_unlock(&o->layer.lock);
	for (; q; q = next) {
		next = steal_ptr(&q->priv);
		if (status < 0)
			stat_answer(q, NULL, -EIO);
		else
			origin_start(&o->layer.base, q);
	}
}

static void named_run_list(struct thread_job *job)
{
	struct named_job *j = CONTAINER_OF(job, struct named_job, job);
	struct named *o = j->o;
	struct origin_list *l = origin_list_of(j->outer);
	CLEANUP_FREE char *text = NULL;
	struct error err = {""};
	size_t bytes;
	int rc = named_text(o, &text, &bytes, &err);

	free(j);
	if (rc == 0)
		rc = named_deliver(o, l, text, bytes, &err);
	if (rc == 0) {
		pthread_mutex_lock(&o->layer.lock);
		o->tag = hash64(text, bytes, o->config.tag_seed);
		pthread_mutex_unlock(&o->layer.lock);
	} else if (rc != -ENOENT && rc != -ENOTDIR) {
		o->config.failed(o->config.arg, &err);
		/* -EINVAL counts as an answer, so the layer above does not try
		 * again, which would not help if the text is wrong. */
		rc = rc == -EBADMSG ? -EINVAL : rc;
	}
	/* after a listing of the root, all names are known */
	bytes = *l->path == '\0';
	origin_answer(&l->req, rc);
	if (bytes)
		named_listed(o, rc);
}

/* -- The table ------------------------------------------------------------- */

static void named_start(struct origin *base, struct origin_request *q)
{
	struct named *o = named_of(base);
	struct named_job *j;

	if (q->op == ORIGIN_READ) {
		origin_start(o->layer.inner, q);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		late_answer(o->layer.late, q);
		return;
	}
	j->o = o;
	j->outer = q;
	thread_job_init(&j->job,
		q->op == ORIGIN_STAT ? named_run_stat : named_run_list);
	thread_pool_submit(o->pool, &j->job);
}

static bool named_free(struct origin *base)
{
	struct named *o = named_of(base);

	if (!thread_pool_free(o->pool, NAMED_WAIT_NS) ||
		!layer_release(&o->layer))
		return false;
	free(o->text);
	free(o);
	return true;
}

static const struct origin_ops named_ops = {
	.start = named_start,
	.free = named_free,
};

int origin_named_new(struct origin **out, struct origin *inner,
	const struct origin_named_config *config, struct error *err)
{
	CLEANUP_FREE struct named *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return error_set(err, -ENOMEM, "%m");
	rc = thread_pool_new(&o->pool, NAMED_THREADS);
	if (rc == 0)
		rc = layer_init(&o->layer, &named_ops, inner, RANK_NAMED);
	if (rc < 0) {
		(void)thread_pool_free(
			/* cannot fail: the pool has no jobs */
			o->pool, NAMED_WAIT_NS);
		return error_set(err, rc, "cannot start a thread: %m");
	}
	o->layer.base.traits.lists_recursively = true;
	o->config = *config;
	o->uid = geteuid();
	o->gid = getegid();
	*out = &steal_ptr(&o)->layer.base;
	return 0;
}

/* -- The check ------------------------------------------------------------- */

/* Parse all lines. If until_ns is not 0, also look for a few of the files,
 * until the source has one of them. */
static int named_lines(const struct named *o, const char *text, size_t bytes,
	uint64_t *files, uint64_t until_ns, struct error *err)
{
	CLEANUP_FREE struct index_lines *x = calloc(1, sizeof(*x));
	uint64_t step = *files / NAMED_SAMPLES + 1, n = 0;
	int rc;

	if (!x)
		return error_set(err, -ENOMEM, "%m");
	x->at = text;
	x->end = text + bytes;
	while ((rc = index_lines_next(x, err)) > 0) {
		if (until_ns && n % step == 0) {
			rc = o->config.fits(o->config.arg, x->path,
				x->version.size_bytes, until_ns, err);
			if (rc != 0)
				return rc < 0 ? rc : 0;
		}
		n++;
	}
	if (rc < 0)
		return rc;
	*files = n;
	return until_ns
		? error_set(err, -EBADMSG,
			  "it does not match the source, where its files "
			  "are missing or have other sizes; make it again "
			  "with 'refrain index'")
		: 0;
}

int origin_named_check(struct origin *base, struct error *err)
{
	struct named *o = named_of(base);
	CLEANUP_FREE char *text = NULL;
	uint64_t files = 0;
	size_t bytes;
	int rc = o->config.load(o->config.arg, &text, &bytes, err);

	if (rc == 0)
		rc = named_lines(o, text, bytes, &files, 0, err);
	if (rc == 0 && files == 0)
		rc = error_set(err, -EBADMSG, "it has no files");
	if (rc == 0)
		rc = named_lines(o, text, bytes, &files,
			clock_now_ns() + NAMED_LOOK_NS, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&o->layer.lock);
	o->text = steal_ptr(&text);
	o->bytes = bytes;
	o->tag = hash64(o->text, bytes, o->config.tag_seed);
	o->due = true;
	pthread_mutex_unlock(&o->layer.lock);
	return 0;
}
