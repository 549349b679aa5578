/* SPDX-License-Identifier: MIT */
/*
 * Looks up one name in the manifest or, if the name is unknown there, at the
 * origin. If the origin does not answer, known names are still served.
 */
#include "mount/names/tree_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

/* Maximum number of questions to the origin in flight while it does not answer.
 */
#define PROBES_MAX 8u

/* A question to the origin about one name. */
struct ask {
	struct origin_stat s;
	struct tree *t;
	struct list link; /* in tree.asks; guarded by tree.lock */
	/* the look-up that waits, or NULL; guarded by tree.lock */
	struct tree_lookup *l;
	/* 1 for the request, 1 for the timer; guarded by tree.lock */
	unsigned refs;
	/* Fires when the look-up has waited for tree_config.patience_ns */
	struct timer late;
	node_id dir;	  /* the question holds a reference */
	node_id known;	  /* the present node of the name; 0: none */
	bool follow;	  /* the node may get another version */
	const char *name; /* points into `path` */
	char path[MANIFEST_PATH_MAX];
};

/* Answer a look-up although the origin has failed: a known name stays valid. */
static int answer_known(
	struct ask *a, int status, bool ref, struct node_info *info)
{
	struct manifest *m = a->t->config.manifest;

	if (a->known == 0)
		return status;
	return manifest_lookup(m, a->dir, a->name, ref, info);
}

static int name_answer(struct ask *a, int status, const struct file_attr *attr,
	const char *target, bool ref, struct node_info *info)
{
	struct manifest *m = a->t->config.manifest;
	struct file_entry e = {.name = a->name, .target = target};

	if (status == 0) {
		if (a->follow &&
			manifest_follow(m, a->dir, a->name, attr, tree_on_event,
				a->t) == 0)
			return manifest_lookup(m, a->dir, a->name, ref, info);
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

/* Drop a reference. The last one frees the question. */
static void ask_put(struct ask *a)
{
	struct tree *t = a->t;
	bool last;

	pthread_mutex_lock(&t->lock);
	last = --a->refs == 0;
	pthread_mutex_unlock(&t->lock);
	if (!last)
		return;
	ask_free(a);
	tree_request_end(t);
}

/* Take the look-up that waits for the answer. Only the thread that has taken it
 * may answer it. */
static struct tree_lookup *take_lookup(struct ask *a, int status)
{
	LOCK_SCOPE(&a->t->lock);
	list_del(&a->link);
	/* With all other errors, the origin has answered, or memory was short.
	 */
	a->t->silent =
		status == -EIO || status == -ETIMEDOUT || status == -ESTALE;
	return steal_ptr(&a->l);
}

/* Report an error that a reader gets, unless the reader has caused it. */
static void report_name(const struct ask *a, int status)
{
	struct event e = {
		.kind = EVENT_NAME_FAILED, .path = a->path, .status = status};

	if (status == -E2BIG)
		e.kind = EVENT_NAMES_FULL;
	if (status == -EIO || status == -ETIMEDOUT || status == -E2BIG)
		event_report(a->t->config.events, &e);
}

static void name_ask_done(struct origin_request *q, int status)
{
	struct ask *a = CONTAINER_OF(q, struct ask, s.req);
	struct tree_lookup *l = take_lookup(a, status);
	struct node_info info;

	status = name_answer(
		a, status, a->s.attr, a->s.target, l != NULL, &info);
	if (l) {
		report_name(a, status);
		l->done(l, status, status == 0 ? &info : NULL);
	}
	if (timer_cancel(a->t->config.timers, &a->late))
		ask_put(a);
	ask_put(a);
}

/* The origin is late: answer the waiting look-up from the manifest. When the
 * origin answers later, its answer still updates the manifest. */
static void ask_late(struct timer *timer)
{
	struct ask *a = CONTAINER_OF(timer, struct ask, late);
	struct tree *t = a->t;
	struct tree_lookup *l;
	struct node_info info;
	int rc;

	pthread_mutex_lock(&t->lock);
	l = steal_ptr(&a->l);
	t->silent |= l != NULL;
	pthread_mutex_unlock(&t->lock);
	if (l) {
		rc = manifest_lookup(
			t->config.manifest, a->dir, a->name, true, &info);
		l->done(l, rc, rc == 0 ? &info : NULL);
	}
	ask_put(a);
}

/* Returns a look-up that still waits, or NULL. */
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

static void ask_arm(struct ask *a)
{
	struct tree *t = a->t;

	pthread_mutex_lock(&t->lock);
	a->refs++;
	pthread_mutex_unlock(&t->lock);
	timer_set(t->config.timers, &a->late,
		clock_now_ns() + t->config.patience_ns);
}

/* Like tree_request_begin(), but also adds the question to tree.asks. */
static bool ask_begin(struct tree *t, struct ask *a)
{
	LOCK_SCOPE(&t->lock);
	if (t->stopping)
		return false;
	t->requests++;
	list_add_tail(&t->asks, &a->link);
	return true;
}

/* Ask the origin about one name. `l` is the look-up that waits, or NULL.
 * `wait`: it waits for any time; otherwise at most for tree_config.patience_ns.
 * Returns 0 or -errno. */
static int name_ask(struct tree *t, node_id dir, const char *name,
	node_id known, struct tree_lookup *l, bool wait)
{
	struct ask *a = calloc(1, sizeof(*a));
	size_t size = strlen(name) + 2;
	struct node_info info;
	int len;

	if (!a)
		return -ENOMEM;
	/* Take a reference, because the directory may be removed before the
	 * answer. */
	if (!manifest_ref(t->config.manifest, dir)) {
		free(a);
		return -ESTALE;
	}
	a->t = t;
	a->refs = 1;
	timer_init(&a->late, ask_late);
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
	a->follow = wait;
	a->s = (struct origin_stat){.req.done = name_ask_done, .path = a->path};
	if (known != 0 && manifest_get(t->config.manifest, known, &info) == 0)
		a->s.known = info.attr.version;
	if (!ask_begin(t, a)) {
		ask_free(a);
		return -ENOTCONN;
	}
	if (!wait)
		ask_arm(a);
	origin_stat(t->config.origin, &a->s);
	return 0;
}

/* Does the origin not answer at present? If so, look-ups of known names do not
 * wait. *probe is set if it is time to ask the origin again, to find out
 * whether it answers. */
static bool is_silent(struct tree *t, bool *probe)
{
	uint64_t now_s = tree_now_s();

	LOCK_SCOPE(&t->lock);
	*probe = t->silent && list_count(&t->asks) < PROBES_MAX &&
		now_s != t->probed_s;
	if (*probe)
		t->probed_s = now_s;
	return t->silent;
}

/* Ask the origin to confirm a name. Returns 1 if the manifest's answer can be
 * used at once, 0 if `l` waits, or -errno. */
static int ask_again(struct tree *t, node_id dir, const char *name,
	node_id known, struct tree_lookup *l)
{
	bool probe;

	if (!is_silent(t, &probe)) {
		/* Reset the age of the name now, so that the origin is asked
		 * once in each period, however many look-ups there are. */
		if (known != 0)
			manifest_checked(
				t->config.manifest, known, tree_now_s());
		return name_ask(t, dir, name, known, l, false);
	}
	if (probe)
		(void)name_ask(t, dir, name, known, NULL, true);
	return 1;
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

/* Look up a name that the manifest does not have. */
static int lookup_unknown(
	struct tree *t, node_id dir, const char *name, struct tree_lookup *l)
{
	struct manifest *m = t->config.manifest;
	int rc = 1;

	if (strlen(name) > 255)
		return -ENAMETOOLONG;
	if (!is_listed(m, dir))
		return name_ask(t, dir, name, 0, l, true);
	if (t->config.revalidate_s > 0)
		rc = ask_again(t, dir, name, 0, l);
	if (rc <= 0)
		return rc;
	manifest_negative(m, dir);
	return -ENOENT;
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
	rc = ask_again(t, dir, name, info->id, l);
	if (rc != 0)
		return 1;
	manifest_unref(m, info->id, 1);
	return 0;
}

int tree_follow(struct tree *t, node_id id, struct tree_lookup *l)
{
	struct manifest *m = t->config.manifest;
	char path[MANIFEST_PATH_MAX];
	struct node_info info;
	const char *name;

	if (manifest_get(m, id, &info) < 0 || info.retired ||
		manifest_path(m, id, path, sizeof(path)) <= 0)
		return -ESTALE;
	name = strrchr(path, '/');
	return name_ask(
		t, manifest_parent(m, id), name ? name + 1 : path, id, l, true);
}

void tree_recheck(struct tree *t, node_id id)
{
	/* If this fails, the next reader tries again. */
	(void)tree_follow(t, id, NULL);
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

static void root_done(struct origin_request *q, int status)
{
	struct ask_root *a = CONTAINER_OF(q, struct ask_root, s.req);
	const struct file_attr *attr = a->s.attr;
	struct tree *t = a->t;
	struct node_info old;

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
		.s = {.req.done = root_done, .path = ""},
		.t = t,
		.wait = true,
		.lock = LOCK_INIT(RANK_ROOT),
		.cond = PTHREAD_COND_INITIALIZER,
	};
	struct node_info root;

	/* If a saved manifest was loaded, the mount can serve without the
	 * source, so do not wait for it: it may hang. */
	if (manifest_get(t->config.manifest, NODE_ROOT, &root) == 0 &&
		root.listed)
		return 0;
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

static void name_check_root(struct tree *t)
{
	struct ask_root *a = calloc(1, sizeof(*a));

	if (!a || !tree_request_begin(t)) {
		free(a);
		return;
	}
	a->s = (struct origin_stat){.req.done = root_done, .path = ""};
	a->t = t;
	origin_stat(t->config.origin, &a->s);
}

void tree_revalidate_dir(struct tree *t, const struct node_info *dir)
{
	bool probe;

	if (!is_due(t, dir) || dir->retired || (is_silent(t, &probe) && !probe))
		return;
	manifest_checked(t->config.manifest, dir->id, tree_now_s());
	if (dir->id == NODE_ROOT)
		name_check_root(t);
	else
		tree_recheck(t, dir->id);
}
