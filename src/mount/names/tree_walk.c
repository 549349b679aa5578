/* SPDX-License-Identifier: MIT */
/* Lists directories and walks trees. A directory is listed by one request,
 * however many callers wait for it. A walk has a few listings in progress, and
 * takes the next directory from a stack. Background scans, warming and
 * refreshes are walks. */
#include "mount/names/tree_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/names_memory.h"
#include "common/base/size.h"

/* The number of listings that a walk has in progress. */
#define WALK_PARALLEL 8u

struct listing {
	struct origin_list l;
	struct tree *t;
	struct list link; /* in tree.listings; guarded by tree.lock */
	/* list of struct tree_wait; guarded by tree.lock */
	struct list waiters;
	/* list of struct tree_wait that need the next listing; guarded by
	 * tree.lock */
	struct list later;
	bool again;    /* another listing must follow; guarded by tree.lock */
	uint64_t turn; /* tree.turn at its beginning; guarded by tree.lock */
	node_id dir;   /* the listing holds a reference */
	/* Used by callbacks of this listing, which run one after another */
	uint32_t stamp;
	int status; /* error of the last manifest_put() that failed */
	char path[];
};

static void listing_batch(
	struct origin_list *l, const struct file_entry *entries, size_t n)
{
	struct listing *g = CONTAINER_OF(l, struct listing, l);
	uint64_t now_s = tree_now_s();

	for (size_t i = 0; i < n; i++) {
		int rc = manifest_put(g->t->config.manifest, g->dir,
			&entries[i], now_s, false, NULL, tree_on_event, g->t);

		/* Leave out a name that no directory can contain; a lack of
		 * memory is an error. */
		if (rc < 0 && rc != -EINVAL && rc != -ENAMETOOLONG)
			g->status = rc;
	}
}

static void listing_restart(struct origin_list *l)
{
	struct listing *g = CONTAINER_OF(l, struct listing, l);

	g->status = 0;
	g->stamp = manifest_list_begin(g->t->config.manifest);
}

/* Ask the origin about the name of a directory that it could not find. */
static void directory_gone(struct tree *t, node_id dir)
{
	if (dir != NODE_ROOT)
		tree_recheck(t, dir);
}

static void tell_waiters(struct list *waiters, int status)
{
	LIST_FOREACH_SAFE(w, next, waiters) {
		struct tree_wait *wait =
			CONTAINER_OF(w, struct tree_wait, link);

		wait->done(wait, status);
	}
}

static void listing_free(struct listing *g)
{
	manifest_unref(g->t->config.manifest, g->dir, 1);
	free(g);
}

/* Start a listing that is in tree.listings already. */
static void listing_start(struct listing *g)
{
	g->status = 0;
	g->stamp = manifest_list_begin(g->t->config.manifest);
	origin_list(g->t->config.origin, &g->l);
}

/* Take the waiters that this listing can answer. Returns false if another
 * listing must follow, because some waiters came too late for this one. */
static bool listing_ended(struct listing *g, struct list *waiters)
{
	ASSERT_HELD(&g->t->lock);
	list_splice_tail(waiters, &g->waiters);
	if (!g->again || g->t->stopping) {
		list_del(&g->link);
		return true;
	}
	list_splice_tail(&g->waiters, &g->later);
	g->again = false;
	g->turn = ++g->t->turn;
	return false;
}

static void listing_done(struct origin_request *q, int status)
{
	struct listing *g = CONTAINER_OF(q, struct listing, l.req);
	struct tree *t = g->t;
	struct list waiters;
	bool ended;

	if (status == 0)
		status = g->status;
	if (status == 0)
		status = manifest_list_end(
			t->config.manifest, g->dir, g->stamp, tree_on_event, t);
	else if (status == -ENOENT || status == -ENOTDIR)
		directory_gone(t, g->dir);
	list_init(&waiters);
	pthread_mutex_lock(&t->lock);
	t->listed += status == 0;
	ended = listing_ended(g, &waiters);
	pthread_mutex_unlock(&t->lock);
	tell_waiters(&waiters, status);
	if (!ended) {
		listing_start(g);
		return;
	}
	tell_waiters(&g->later, -ENOTCONN);
	listing_free(g);
	tree_request_end(t);
}

void tree_fail_listings(struct tree *t)
{
	struct list waiters;

	list_init(&waiters);
	pthread_mutex_lock(&t->lock);
	LIST_FOREACH(l, &t->listings) {
		struct listing *g = CONTAINER_OF(l, struct listing, link);

		list_splice_tail(&waiters, &g->waiters);
		list_splice_tail(&waiters, &g->later);
	}
	pthread_mutex_unlock(&t->lock);
	tell_waiters(&waiters, -ENOTCONN);
}

static int listing_new(struct tree *t, node_id dir, struct listing **out)
{
	char path[MANIFEST_PATH_MAX];
	int len = manifest_path(t->config.manifest, dir, path, sizeof(path));
	struct listing *g;

	if (len < 0)
		return len;
	g = calloc(1, sizeof(*g) + (size_t)len + 1);
	/* Take a reference, because the directory may be removed before its
	 * names arrive. */
	if (!g || !manifest_ref(t->config.manifest, dir)) {
		free(g);
		return -ENOMEM;
	}
	memcpy(g->path, path, (size_t)len + 1);
	g->t = t;
	g->dir = dir;
	g->l = (struct origin_list){
		.req.done = listing_done,
		.path = g->path,
		.batch = listing_batch,
		.restart = listing_restart,
	};
	list_init(&g->waiters);
	list_init(&g->later);
	*out = g;
	return 0;
}

/* Wait for the listing in progress or, if it began too early, for the one after
 * it. Returns false if no listing is in progress. */
static bool walk_join(
	struct tree *t, node_id dir, uint64_t since, struct tree_wait *w)
{
	ASSERT_HELD(&t->lock);
	LIST_FOREACH(l, &t->listings) {
		struct listing *g = CONTAINER_OF(l, struct listing, link);
		bool later = g->turn <= since;

		if (g->dir != dir)
			continue;
		g->again |= later;
		if (w)
			list_add_tail(
				later ? &g->later : &g->waiters, &w->link);
		return true;
	}
	return false;
}

/* List a directory. `since` is as in tree_list_since(); 0: the time at which
 * the listing began does not matter. */
static int list(struct tree *t, node_id dir, bool again, uint64_t since,
	struct tree_wait *w)
{
	struct node_info info;
	struct listing *g;
	int rc = manifest_get(t->config.manifest, dir, &info);

	if (rc < 0)
		return rc;
	if (info.attr.kind != KIND_DIR)
		return -ENOTDIR;
	if (info.listed && !again)
		return 1;
	rc = listing_new(t, dir, &g);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&t->lock);
	if (t->stopping || walk_join(t, dir, since, w)) {
		rc = t->stopping ? -ENOTCONN : 0;
		pthread_mutex_unlock(&t->lock);
		listing_free(g);
		return rc;
	}
	t->requests++;
	g->turn = ++t->turn;
	list_add_tail(&t->listings, &g->link);
	if (w)
		list_add_tail(&g->waiters, &w->link);
	pthread_mutex_unlock(&t->lock);
	listing_start(g);
	return 0;
}

int tree_list(struct tree *t, node_id dir, bool again, struct tree_wait *w)
{
	return list(t, dir, again, again ? UINT64_MAX : 0, w);
}

int tree_list_since(
	struct tree *t, node_id dir, uint64_t since, struct tree_wait *w)
{
	return list(t, dir, true, since, w);
}

/* -- Walks --------------------------------------------------------------- */

struct walk {
	struct tree *t;
	bool again;
	uint64_t since;	      /* tree.turn at the beginning of the walk */
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	struct array stack; /* array of node_id */
	unsigned active;
	uint64_t listed_ns; /* time at which a directory was last listed */
	struct tree_walk_result result;
};

struct walk_step {
	struct tree_wait w;
	struct walk *walk;
	node_id dir;
	uint64_t begun_ns;
};

static void step_failed(struct walk *k, node_id dir, int status)
{
	struct error why;

	if (k->result.failed++ > 0)
		return;
	k->result.first = dir;
	k->result.status = status;
	if (origin_explain(k->t->config.origin, status, &why))
		(void)snprintf(k->result.why, sizeof(k->result.why), "%.*s",
			TREE_WHY_MAX - 1, why.msg);
}

static void push(struct walk *k, node_id dir)
{
	node_id *top = array_grow(&k->stack, sizeof(*top));

	if (top)
		*top = dir;
	else
		step_failed(k, dir, -ENOMEM);
}

static bool push_subdir(void *arg, const char *name,
	const struct node_info *info, uint64_t next_pos)
{
	(void)name;
	(void)next_pos;
	if (info->attr.kind == KIND_DIR)
		push(arg, info->id);
	return true;
}

/* Note why the walk ends early. If memory is too small for the names, this
 * replaces other reasons. */
static void note_unasked(struct tree_walk_result *r, int status)
{
	if (status < 0 && r->unasked != -E2BIG)
		r->unasked = status;
}

/* Note the end of a listing. If a listing has timed out and no other listing
 * was answered in the meantime, end the walk: a time-out for each remaining
 * directory would take hours. The first walk of a mount goes on. */
static void note_answer(struct walk *k, uint64_t begun_ns, int status)
{
	ASSERT_HELD(&k->lock);
	if (status == -EMLINK || status == -E2BIG ||
		(status == -ETIMEDOUT && k->again && k->listed_ns < begun_ns))
		note_unasked(&k->result, status);
	else if (status >= 0)
		k->listed_ns = clock_now_ns();
}

/* Handle the end of a listing: push the sub-directories onto the stack of the
 * walk. */
static void step_done(
	struct walk *k, node_id dir, uint64_t begun_ns, int status)
{
	LOCK_SCOPE(&k->lock);
	note_answer(k, begun_ns, status);
	k->active--;
	k->result.directories++;
	if (status < 0 && status != -ENOENT && status != -ESTALE)
		step_failed(k, dir, status);
	(void)manifest_readdir(k->t->config.manifest, dir, 0, false,
		/* a directory that is gone has nothing below it */
		push_subdir, k);
	pthread_cond_signal(&k->cond);
}

static void step_listed(struct tree_wait *w, int status)
{
	struct walk_step *s = CONTAINER_OF(w, struct walk_step, w);
	struct walk *k = s->walk;
	node_id dir = s->dir;
	uint64_t begun_ns = s->begun_ns;

	free(s);
	step_done(k, dir, begun_ns, status);
}

/* List the next directory, or fail it if the walk has ended early. Called
 * without the walk's lock; k->active counts this listing already. */
static void step_start(struct walk *k, node_id dir, int unasked)
{
	struct walk_step *s = unasked ? NULL : calloc(1, sizeof(*s));
	uint64_t begun_ns = clock_now_ns();
	int rc = unasked ? unasked : -ENOMEM;

	if (s) {
		s->w.done = step_listed;
		s->walk = k;
		s->dir = dir;
		s->begun_ns = begun_ns;
		rc = list(k->t, dir, k->again, k->since, &s->w);
	}
	if (rc == 0)
		return;
	free(s);
	step_done(k, dir, begun_ns, rc);
}

static void walk_run(struct walk *k)
{
	pthread_mutex_lock(&k->lock);
	while (array_bytes(&k->stack) > 0 || k->active > 0) {
		node_id dir;
		int unasked;

		if (array_bytes(&k->stack) == 0 || k->active >= WALK_PARALLEL) {
			pthread_cond_wait(&k->cond, &k->lock);
			continue;
		}
		dir = *(node_id *)array_pop(&k->stack, sizeof(dir));
		k->active++;
		unasked = k->result.unasked;
		pthread_mutex_unlock(&k->lock);
		step_start(k, dir, unasked);
		pthread_mutex_lock(&k->lock);
	}
	pthread_mutex_unlock(&k->lock);
}

/* Should the origin list everything by one request? Yes, if the origin can do
 * so and not all names are known. */
static bool is_deep(struct tree *t, node_id top, bool again)
{
	struct node_info info;

	return origin_traits(t->config.origin)->lists_recursively &&
		(again ||
			(manifest_get(t->config.manifest, top, &info) == 0 &&
				!info.listed));
}

static void walk_deep(struct walk *k, node_id top)
{
	int status = tree_walk_deep(k->t, top, &k->result.directories);
	LOCK_SCOPE(&k->lock);

	if (status == -E2BIG)
		note_unasked(&k->result, status);
	if (status < 0)
		step_failed(k, top, status);
}

int tree_walk(struct tree *t, node_id top, bool again,
	struct tree_walk_result *result)
{
	struct walk k = {
		.t = t,
		.again = again,
		.lock = LOCK_INIT(RANK_WALK),
		.cond = PTHREAD_COND_INITIALIZER,
	};
	bool stopping;

	pthread_mutex_lock(&t->lock);
	k.since = again ? t->turn : 0;
	k.result.changed = t->changed;
	k.result.added = t->added;
	k.result.removed = t->removed;
	pthread_mutex_unlock(&t->lock);
	if (is_deep(t, top, again))
		walk_deep(&k, top);
	else
		push(&k, top);
	walk_run(&k);
	array_release(&k.stack);
	pthread_mutex_lock(&t->lock);
	k.result.changed = t->changed - k.result.changed;
	k.result.added = t->added - k.result.added;
	k.result.removed = t->removed - k.result.removed;
	stopping = t->stopping;
	pthread_mutex_unlock(&t->lock);
	*result = k.result;
	return stopping ? -ENOTCONN : 0;
}

void tree_walk_add_failed(
	struct tree_walk_result *sum, const struct tree_walk_result *one)
{
	if (sum->failed == 0) {
		sum->first = one->first;
		sum->status = one->status;
		strcpy(sum->why, one->why);
	}
	sum->failed += one->failed;
	note_unasked(sum, one->unasked);
}

void tree_show_path(struct tree *t, node_id id, char *buf)
{
	char path[MANIFEST_PATH_MAX];
	int len = manifest_path(t->config.manifest, id, path, sizeof(path));

	if (len <= 0)
		(void)strcpy(path, len < 0 ? "?" : "/");
	if (len >= TREE_SHOWN_MAX)
		(void)strcpy(path + TREE_SHOWN_MAX - 4, "...");
	(void)snprintf(buf, TREE_SHOWN_MAX, "%.*s", TREE_SHOWN_MAX - 1, path);
}

int tree_walk_error(struct tree *t, const struct tree_walk_result *result,
	struct error *err)
{
	const char *why =
		result->why[0] ? result->why : strerror(-result->status);
	char path[TREE_SHOWN_MAX], size[SIZE_TEXT_MAX];

	tree_show_path(t, result->first, path);
	if (result->unasked == -EMLINK)
		return error_set(err, result->unasked,
			"the source's directories seem to have no end, so that "
			"the listing was given up in '%s'",
			path);
	if (result->unasked == -E2BIG)
		return error_set(err, result->unasked,
			"the source has more names than fit in their share of "
			"memory, %s; mount a prefix of it, give the names with "
			"--manifest, or raise the limit on memory",
			size_format(names_memory_bytes(), size));
	if (result->failed == 1)
		return error_set(err, result->status,
			"1 directory could not be listed: '%s': %s", path, why);
	return error_set(err, result->status,
		"%" PRIu64 " directories could not be listed, first '%s': %s",
		result->failed, path, why);
}
