/* SPDX-License-Identifier: MIT */
/*
 * Walks an origin that lists recursively: one listing returns all files below a
 * directory, and their paths show which directories exist. If a directory and a
 * file have the same name, the mount shows the directory. Batches of names
 * arrive on the threads of the origin, one after another. The thread that walks
 * waits for the last batch.
 */
#include "mount/names/tree_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

#define DEEP_LOOK_NS (100 * NS_PER_MS)
#define DEEP_PATH_MAX 4096u

/* A file that has the same name as a directory. It is added after the listing
 * if the directory does not exist any more. */
struct shadowed {
	struct shadowed *next;
	node_id dir;
	struct file_attr attr;
	char name[];
};

struct deep {
	struct origin_list l;
	struct tree *t;
	node_id top;
	uint32_t stamp;
	int failed;	/* error of the last manifest_put() that failed */
	uint64_t now_s; /* time at which the batch arrived */
	/* The directory of the last name. The next name is usually in the same
	 * directory. */
	char last[DEEP_PATH_MAX];
	size_t last_len;
	node_id last_dir;
	struct shadowed *shadowed;
	/* Guards all members below; no other lock is taken while it is held */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int status;
	/* `left`: the thread that walks does not wait any more */
	bool done, left;
	char path[];
};

static void deep_free(struct deep *d)
{
	while (d->shadowed) {
		struct shadowed *s = d->shadowed;

		d->shadowed = s->next;
		free(s);
	}
	pthread_cond_destroy(&d->cond);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static int deep_put(struct deep *d, node_id dir, const struct file_entry *e,
	struct node_info *info)
{
	return manifest_put(d->t->config.manifest, dir, e, d->now_s, false,
		info, tree_on_event, d->t);
}

/* Find or create the directory whose path is the first `len` bytes of
 * `path`. */
static int deep_dir(struct deep *d, const char *path, size_t len,
	const struct file_attr *file, node_id *out)
{
	struct file_entry entry = {.attr = {.kind = KIND_DIR,
					   .mode = 0555,
					   .uid = file->uid,
					   .gid = file->gid}};
	char name[256];
	size_t at = 0;

	*out = d->top;
	if (len >= sizeof(d->last))
		return -ENAMETOOLONG;
	if (d->last_dir && len == d->last_len &&
		memcmp(path, d->last, len) == 0) {
		*out = d->last_dir;
		return 0;
	}
	while (at < len) {
		const char *slash = memchr(path + at, '/', len - at);
		size_t n = slash ? (size_t)(slash - path) - at : len - at;
		struct node_info info;
		int rc;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path + at, n);
		name[n] = '\0';
		entry.name = name;
		rc = deep_put(d, *out, &entry, &info);
		if (rc < 0)
			return rc;
		*out = info.id;
		at += n + 1;
	}
	memcpy(d->last, path, len);
	d->last_len = len;
	d->last_dir = *out;
	return 0;
}

static int shadow(struct deep *d, node_id dir, const struct file_entry *e)
{
	size_t size = strlen(e->name) + 1;
	struct shadowed *s = malloc(sizeof(*s) + size);

	if (!s)
		return -ENOMEM;
	s->dir = dir;
	s->attr = e->attr;
	memcpy(s->name, e->name, size);
	s->next = d->shadowed;
	d->shadowed = s;
	return 0;
}

static int deep_file(struct deep *d, const struct file_entry *e)
{
	const char *slash = strrchr(e->name, '/');
	struct file_entry file = *e;
	node_id dir;
	size_t len = slash ? (size_t)(slash - e->name) : 0;
	bool is_dir = e->attr.kind == KIND_DIR;
	int rc = deep_dir(
		d, e->name, is_dir ? strlen(e->name) : len, &e->attr, &dir);

	if (rc < 0 || is_dir)
		return rc;
	file.name = slash ? slash + 1 : e->name;
	rc = manifest_put_beside(d->t->config.manifest, dir, &file, d->now_s,
		tree_on_event, d->t);
	return rc == -EISDIR ? shadow(d, dir, &file) : rc;
}

static void deep_batch(
	struct origin_list *l, const struct file_entry *entries, size_t n)
{
	struct deep *d = CONTAINER_OF(l, struct deep, l);

	d->now_s = tree_now_s();
	for (size_t i = 0; i < n; i++) {
		int rc = deep_file(d, &entries[i]);

		/* Leave out a name that no directory can contain; a lack of
		 * memory is an error. */
		if (rc < 0 && rc != -EINVAL && rc != -ENAMETOOLONG)
			d->failed = rc;
	}
}

static void deep_restart(struct origin_list *l)
{
	struct deep *d = CONTAINER_OF(l, struct deep, l);

	d->failed = 0;
	d->last_dir = 0;
	d->stamp = manifest_list_begin(d->t->config.manifest);
}

/* -- The end of the listing ------------------------------------------------ */

struct dirs {
	struct array ids; /* array of node_id */
	bool failed;
};

static bool add_dir(void *arg, const char *name, const struct node_info *info,
	uint64_t next_pos)
{
	struct dirs *s = arg;
	node_id *id;

	(void)name;
	(void)next_pos;
	if (info->attr.kind != KIND_DIR)
		return true;
	id = array_grow(&s->ids, sizeof(*id));
	s->failed |= !id;
	if (id)
		*id = info->id;
	return id != NULL;
}

/* Remove names that the listing did not return, in all directories. */
static int end_dirs(struct deep *d, uint64_t *directories)
{
	struct manifest *m = d->t->config.manifest;
	struct dirs s = {.failed = false};
	const node_id *at;
	struct node_info top = {.id = d->top, .attr.kind = KIND_DIR};

	(void)add_dir(&s, "", &top, 0);
	while ((at = array_pop(&s.ids, sizeof(*at)))) {
		node_id dir = *at;

		/* If this fails, the directory was removed in the meantime, and
		 * there is nothing below it. */
		if (manifest_list_end(m, dir, d->stamp, tree_on_event, d->t) ==
			0)
			(void)manifest_readdir(m, dir, 0, false, add_dir, &s);
		++*directories;
	}
	array_release(&s.ids);
	return s.failed ? -ENOMEM : 0;
}

static void end_shadowed(struct deep *d)
{
	struct node_info info;

	for (struct shadowed *s = d->shadowed; s; s = s->next) {
		struct file_entry e = {.name = s->name, .attr = s->attr};

		if (manifest_lookup(d->t->config.manifest, s->dir, s->name,
			    false, &info) == -ENOENT)
			(void)deep_put(d, s->dir, &e, NULL);
	}
}

static void deep_done(struct origin_request *q, int status)
{
	struct deep *d = CONTAINER_OF(q, struct deep, l.req);
	struct tree *t = d->t;
	bool left;

	pthread_mutex_lock(&d->lock);
	d->status = status == 0 ? d->failed : status;
	d->done = true;
	left = d->left;
	pthread_cond_signal(&d->cond);
	pthread_mutex_unlock(&d->lock);
	if (left)
		deep_free(d);
	tree_request_end(t);
}

/* -- The walk -------------------------------------------------------------- */

static struct deep *deep_new(struct tree *t, node_id top)
{
	char path[MANIFEST_PATH_MAX];
	int len = manifest_path(t->config.manifest, top, path, sizeof(path));
	struct deep *d =
		len < 0 ? NULL : calloc(1, sizeof(*d) + (size_t)len + 1);

	if (!d)
		return NULL;
	memcpy(d->path, path, (size_t)len + 1);
	d->t = t;
	d->top = top;
	d->l.path = d->path;
	d->l.deep = true;
	d->l.batch = deep_batch;
	d->l.restart = deep_restart;
	d->l.req.done = deep_done;
	lock_init(&d->lock, RANK_DEEP);
	cond_init(&d->cond);
	return d;
}

static bool tree_stops(struct tree *t)
{
	bool stopping;

	pthread_mutex_lock(&t->lock);
	stopping = t->stopping;
	pthread_mutex_unlock(&t->lock);
	return stopping;
}

/* Wait for the end of the listing. Returns false if the tree is being stopped
 * and the origin has not answered. */
static bool deep_wait(struct deep *d)
{
	bool done;

	pthread_mutex_lock(&d->lock);
	while (!d->done) {
		(void)cond_wait_until(
			&d->cond, &d->lock, clock_now_ns() + DEEP_LOOK_NS);
		if (d->done)
			break;
		pthread_mutex_unlock(&d->lock);
		done = tree_stops(d->t);
		pthread_mutex_lock(&d->lock);
		if (done)
			break;
	}
	done = d->done;
	d->left = !done;
	pthread_mutex_unlock(&d->lock);
	return done;
}

int tree_walk_deep(struct tree *t, node_id top, uint64_t *directories)
{
	struct deep *d = deep_new(t, top);
	int status;

	if (!d)
		return -ENOMEM;
	if (!tree_request_begin(t)) {
		deep_free(d);
		return -ENOTCONN;
	}
	d->stamp = manifest_list_begin(t->config.manifest);
	origin_list(t->config.origin, &d->l);
	if (!deep_wait(d))
		/* the listing is still in progress; deep_done() will free `d`
		 */
		return -ENOTCONN;
	status = d->status;
	if (status == 0)
		status = end_dirs(d, directories);
	if (status == 0)
		end_shadowed(d);
	deep_free(d);
	pthread_mutex_lock(&t->lock);
	t->listed += status == 0;
	pthread_mutex_unlock(&t->lock);
	return status;
}
