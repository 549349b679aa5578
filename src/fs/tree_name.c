/* SPDX-License-Identifier: MIT */
/*
 * One name: from the manifest if it knows, else from the origin. A name that
 * the origin cannot be asked for is not taken for deleted: what is known of
 * it goes on being served.
 */
#include "fs/tree_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A question to the origin about one name. */
struct ask {
	struct origin_stat s;
	struct tree *t;
	struct list link;      /* in tree.asks; tree.lock */
	struct tree_lookup *l; /* tree.lock; NULL: nobody waits */
	node_id dir;	       /* referenced */
	node_id known;	       /* the node that the name had; 0: none */
	const char *name;      /* in path */
	char path[MANIFEST_PATH_MAX];
};

/* The origin did not answer: what is known stays true. */
static int answer_known(
	struct ask *a, int status, bool ref, struct node_info *info)
{
	struct manifest *m = a->t->config.manifest;

	if (a->known == 0)
		return status;
	return manifest_lookup(m, a->dir, a->name, ref, info);
}

static int answer(struct ask *a, int status, const struct file_attr *attr,
	const char *target, bool ref, struct node_info *info)
{
	struct manifest *m = a->t->config.manifest;
	struct file_entry e = {.name = a->name, .target = target};

	if (status == 0) {
		e.attr = *attr;
		return manifest_put(m, a->dir, &e, tree_now_s(), ref, info,
			tree_on_event, a->t);
	}
	if (status != -ENOENT && status != -ENOTDIR)
		return answer_known(a, status, ref, info);
	manifest_negative(m, a->dir);
	(void)manifest_remove(m, a->dir, a->name, tree_on_event, a->t);
	return -ENOENT;
}

static void ask_free(struct ask *a)
{
	manifest_unref(a->t->config.manifest, a->dir, 1);
	free(a);
}

/* Who waits for the answer: ours to tell, and nobody else's. */
static struct tree_lookup *take_lookup(struct ask *a)
{
	struct tree_lookup *l;

	LOCK_SCOPE(&a->t->lock);
	list_del(&a->link);
	l = a->l;
	a->l = NULL;
	return l;
}

static void ask_done(struct origin_stat *s, int status,
	const struct file_attr *attr, const char *target)
{
	struct ask *a = CONTAINER_OF(s, struct ask, s);
	struct tree_lookup *l = take_lookup(a);
	struct tree *t = a->t;
	struct node_info info;

	status = answer(a, status, attr, target, l != NULL, &info);
	if (l)
		l->done(l, status, status == 0 ? &info : NULL);
	ask_free(a);
	tree_request_end(t);
}

/* The first who still waits; NULL: nobody. */
static struct tree_lookup *next_lookup(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	LIST_FOREACH(i, &t->asks) {
		struct ask *a = CONTAINER_OF(i, struct ask, link);

		if (a->l)
			return steal_ptr(&a->l);
	}
	return NULL;
}

void tree_fail_asks(struct tree *t)
{
	struct tree_lookup *l;

	while ((l = next_lookup(t)))
		l->done(l, -ENOTCONN, NULL);
}

/* As tree_request_begin(), and whoever waits can be found. */
static bool ask_begin(struct tree *t, struct ask *a)
{
	LOCK_SCOPE(&t->lock);
	if (t->stopping)
		return false;
	t->requests++;
	list_add_tail(&t->asks, &a->link);
	return true;
}

int tree_ask(struct tree *t, node_id dir, const char *name, node_id known,
	struct tree_lookup *l)
{
	struct ask *a = malloc(sizeof(*a));
	size_t size = strlen(name) + 2;
	int len;

	if (!a)
		return -ENOMEM;
	/* The answer comes when the directory may have gone. */
	if (!manifest_ref(t->config.manifest, dir)) {
		free(a);
		return -ESTALE;
	}
	a->t = t;
	a->dir = dir;
	len = manifest_path(t->config.manifest, dir, a->path, sizeof(a->path));
	if (len < 0 || (size_t)len + size > sizeof(a->path)) {
		ask_free(a);
		return -ENAMETOOLONG;
	}
	if (len > 0)
		a->path[len++] = '/';
	a->name = a->path + len;
	memcpy(a->path + len, name, size - 1);
	a->l = l;
	a->known = known;
	a->s = (struct origin_stat){.path = a->path, .done = ask_done};
	if (!ask_begin(t, a)) {
		ask_free(a);
		return -ENOTCONN;
	}
	origin_stat(t->config.origin, &a->s);
	return 0;
}

static bool is_due(const struct tree *t, const struct node_info *info)
{
	return t->config.revalidate_s > 0 &&
		tree_now_s() >= info->checked_s + t->config.revalidate_s;
}

static bool is_listed(struct manifest *m, node_id dir)
{
	struct node_info info;

	return manifest_get(m, dir, &info) == 0 && info.listed;
}

/* A name that the manifest lacks: perhaps the origin has it. */
static int lookup_unknown(
	struct tree *t, node_id dir, const char *name, struct tree_lookup *l)
{
	struct manifest *m = t->config.manifest;

	if (strlen(name) > 255)
		return -ENAMETOOLONG;
	if (is_listed(m, dir) && t->config.revalidate_s == 0) {
		manifest_negative(m, dir);
		return -ENOENT;
	}
	return tree_ask(t, dir, name, 0, l);
}

int tree_lookup(struct tree *t, node_id dir, const char *name,
	struct tree_lookup *l, struct node_info *info)
{
	struct manifest *m = t->config.manifest;
	int rc = manifest_lookup(m, dir, name, true, info);

	if (rc == -ENOENT)
		return lookup_unknown(t, dir, name, l);
	if (rc < 0)
		return rc;
	if (!is_due(t, info))
		return 1;
	/* At most one question in each period, whoever asks. */
	manifest_checked(m, info->id, tree_now_s());
	rc = tree_ask(t, dir, name, info->id, l);
	if (rc < 0)
		return 1;
	manifest_unref(m, info->id, 1);
	return 0;
}

void tree_recheck(struct tree *t, node_id id)
{
	struct manifest *m = t->config.manifest;
	char path[MANIFEST_PATH_MAX];
	struct node_info info;
	const char *name;

	if (manifest_get(m, id, &info) < 0 || info.retired ||
		manifest_path(m, id, path, sizeof(path)) <= 0)
		return;
	name = strrchr(path, '/');
	/* If this fails the next reader tries again. */
	(void)tree_ask(
		t, manifest_parent(m, id), name ? name + 1 : path, id, NULL);
}

/* -- The root, which has no name ----------------------------------------- */

struct ask_root {
	struct origin_stat s;
	struct tree *t;
	bool wait;
	pthread_mutex_t lock; /* guards done and status */
	pthread_cond_t cond;
	bool done;
	int status;
};

static void root_done(struct origin_stat *s, int status,
	const struct file_attr *attr, const char *target)
{
	struct ask_root *a = CONTAINER_OF(s, struct ask_root, s);
	struct tree *t = a->t;
	struct node_info old;

	(void)target; /* a directory */
	if (status == 0 && attr->kind != KIND_DIR)
		status = -ENOTDIR;
	if (status == 0 &&
		manifest_get(t->config.manifest, NODE_ROOT, &old) == 0) {
		bool changed = !version_equal(old.attr.version, attr->version);

		manifest_put_root(t->config.manifest, attr);
		if (!a->wait && changed && old.listed)
			(void)tree_list(t, NODE_ROOT, true, NULL);
	}
	if (!a->wait) {
		free(a);
	} else {
		pthread_mutex_lock(&a->lock);
		a->done = true;
		a->status = status;
		pthread_cond_signal(&a->cond);
		pthread_mutex_unlock(&a->lock);
	}
	tree_request_end(t);
}

int tree_open_root(struct tree *t, struct error *err)
{
	struct ask_root a = {
		.s = {.path = "", .done = root_done},
		.t = t,
		.wait = true,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER,
	};

	if (!tree_request_begin(t))
		return error_set(err, -ENOTCONN, "the tree is being stopped");
	origin_stat(t->config.origin, &a.s);
	pthread_mutex_lock(&a.lock);
	while (!a.done)
		pthread_cond_wait(&a.cond, &a.lock);
	pthread_mutex_unlock(&a.lock);
	if (a.status < 0)
		return error_set(err, a.status, "cannot read the source: %m");
	return 0;
}

static void check_root(struct tree *t)
{
	struct ask_root *a = calloc(1, sizeof(*a));

	if (!a || !tree_request_begin(t)) {
		free(a);
		return;
	}
	a->s = (struct origin_stat){.path = "", .done = root_done};
	a->t = t;
	origin_stat(t->config.origin, &a->s);
}

void tree_revalidate_dir(struct tree *t, const struct node_info *dir)
{
	if (!is_due(t, dir) || dir->retired)
		return;
	manifest_checked(t->config.manifest, dir->id, tree_now_s());
	if (dir->id == NODE_ROOT)
		check_root(t);
	else
		tree_recheck(t, dir->id);
}
