/* SPDX-License-Identifier: MIT */
/*
 * The background scan. It lists the whole dataset once. After that, statfs() is
 * right, look-ups need no request to the origin, and entries of versions that
 * disappeared while nothing was mounted can be found. If the origin cannot be
 * reached, the scan is repeated later; no entry is swept until everything has
 * been listed.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

#define SCAN_AGAIN_NS (60 * NS_PER_S)
/* Delay before the next listing if the last one had too many names. It is long,
 * because the next listing takes as long as the last one. */
#define SCAN_FULL_AGAIN_NS (3600 * NS_PER_S)
/* A file with at least this many items is huge. */
#define LOOK_UP_ITEMS 65536u

struct scan {
	uint32_t magic;
	struct scan_config config; /* set once */
	pthread_t thread;
	bool started;
	atomic_int state; /* enum scan_state; relaxed */
	/* Held during a sweep, so that only one runs; taken before all other
	 * locks */
	pthread_mutex_t sweep_lock;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	bool stopping;
	/* The directories that the last scan could not list. */
	struct tree_walk_result unlisted;
	/* tree_generation() at the last save. */
	uint64_t saved_at;
	bool unsaved; /* changes of a previous daemon have not been saved */
	bool full;    /* the record of changes is long, so save soon */
	pthread_t saver;
	bool saving; /* the saver was started */
};

static bool scan_is_stopping(struct scan *s)
{
	LOCK_SCOPE(&s->lock);

	return s->stopping;
}

/* -- Items --------------------------------------------------------------- */

bool scan_items(struct scan *s, const struct node_info *info, scan_item_fn *fn,
	void *arg)
{
	struct cache_item item = {
		.digest = info->digest,
		.version = info->attr.version,
		.cookie = info->id,
	};
	uint64_t off = 0, n = 0;

	while (off < info->attr.version.size_bytes) {
		cache_item_at(s->config.cache, off, &item);
		if (!fn(arg, &item) ||
			(++n % LOOK_UP_ITEMS == 0 && scan_is_stopping(s)))
			return false;
		off = item.base + item.size;
	}
	return true;
}

bool scan_is_huge(const struct scan *s, const struct node_info *info)
{
	struct cache_item first = {.version = info->attr.version};

	cache_item_at(s->config.cache, 0, &first);
	return first.size > 0 &&
		info->attr.version.size_bytes / first.size >= LOOK_UP_ITEMS;
}

static bool mark_item(void *arg, const struct cache_item *item)
{
	struct cache *cache = arg;

	cache_mark(cache, item);
	return true;
}

/* Mark all entries that have the size of a huge file's chunks, and the entry of
 * its last chunk. */
static void mark_huge(const struct scan *s, const struct node_info *info)
{
	struct cache_item item = {
		.digest = info->digest,
		.version = info->attr.version,
		.cookie = info->id,
	};

	cache_item_at(s->config.cache, 0, &item);
	store_mark_size(s->config.saved.store, item.size);
	cache_item_at(
		s->config.cache, info->attr.version.size_bytes - 1, &item);
	cache_mark(s->config.cache, &item);
}

/* Mark the entries of a file. Returns false if the mount ends. */
static bool mark_file(struct scan *s, const struct node_info *info)
{
	if (!scan_is_huge(s, info))
		return scan_items(s, info, mark_item, s->config.cache);
	mark_huge(s, info);
	return true;
}

void scan_sweep(struct scan *s)
{
	const struct scan_config *c = &s->config;
	struct node_info info;

	store_wait_ready(c->saved.store);
	LOCK_SCOPE(&s->sweep_lock);
	store_unmark_all(c->saved.store);
	for (node_id id = NODE_ROOT; id < manifest_end(c->manifest); id++) {
		if (id % 1024 == 0 && scan_is_stopping(s))
			return;
		if (manifest_get(c->manifest, id, &info) == 0 &&
			!info.retired && info.attr.kind == KIND_FILE &&
			!mark_file(s, &info))
			/* The mount ends before all items have been marked, so
			 * do not sweep */
			return;
	}
	/* store_sweep() itself counts the entries as invalidated */
	(void)store_sweep(c->saved.store);
}

static void wait_for_next(struct scan *s, uint64_t time_ns)
{
	uint64_t until = clock_now_ns() + time_ns;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && cond_wait_until(&s->cond, &s->lock, until))
		;
	pthread_mutex_unlock(&s->lock);
}

/* -- The manifest that is saved in a tier --------------------------------- */

/* Returns the directory in which the manifest is saved. The store opened and
 * checked it at the start. Do not use its path, which may lead to another
 * directory now. */
static int saved_fd(const struct saved_manifest *k)
{
	return store_tier_fd(k->store, k->tier);
}

/* Report a failure. Damage is counted as a checksum error, any other failure as
 * an error of the tier. */
static void saved_failed(
	const struct saved_manifest *k, enum event_kind kind, int status)
{
	struct event e = {.kind = kind, .dir = k->dir, .status = status};

	if (status != -EBADMSG) {
		store_failed(k->store, k->tier, kind, NULL, status);
		return;
	}
	COUNT(k->counters, checksum_errors);
	event_report(k->events, &e);
}

/* Are the names those of another level than the mount shows? */
static bool is_other_level(const struct stack *stack, struct manifest *m)
{
	struct node_info root;

	return manifest_get(m, NODE_ROOT, &root) == 0 &&
		stack_is_other_level(stack, &root.attr.version);
}

int saved_load(const struct saved_manifest *k, const struct stack *stack,
	struct manifest **out, struct error *err)
{
	const char *source = stack_dataset(stack);
	int rc = manifest_new(out, source);

	if (rc == 0)
		rc = manifest_load(*out, saved_fd(k));
	if (rc < 0 && rc != -ENOENT && rc != -ENOMEM) {
		/* If the file is damaged, old or unreadable, the scan creates a
		 * new one. */
		saved_failed(k, EVENT_MANIFEST_DAMAGED, rc);
		manifest_free(*out);
		*out = NULL;
		rc = manifest_new(out, source);
	} else if (rc == 0 && is_other_level(stack, *out)) {
		manifest_free(*out);
		*out = NULL;
		rc = manifest_new(out, source);
	}
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, rc, "cannot load the manifest: %m");
	return 0;
}

int saved_recover(const struct saved_manifest *k, const char *source,
	struct hash128 session, int names_fd, struct manifest **out,
	struct error *err)
{
	int rc = manifest_new(out, source);

	if (rc < 0)
		return error_set(err, rc, "cannot load the manifest: %m");
	rc = manifest_recover(*out, saved_fd(k), session, names_fd);
	if (rc == 0)
		return 0;
	manifest_free(*out);
	*out = NULL;
	return error_set(err, rc, "its list of names is damaged or missing");
}

void scan_save(struct scan *s)
{
	uint64_t now = tree_generation(s->config.tree);
	bool changed;
	int rc;

	pthread_mutex_lock(&s->lock);
	changed = s->saved_at < now || s->unsaved;
	pthread_mutex_unlock(&s->lock);
	if (!changed)
		return;
	tree_note_told(s->config.tree);
	rc = manifest_save(s->config.manifest, saved_fd(&s->config.saved));
	if (rc < 0) {
		/* The file of an earlier save stays. Another save follows, at
		 * the latest at the end of the mount. */
		saved_failed(&s->config.saved, EVENT_MANIFEST_UNSAVED, rc);
		return;
	}
	LOCK_SCOPE(&s->lock);
	s->unsaved = false;
	if (s->saved_at < now)
		s->saved_at = now;
}

/* -- The scan ------------------------------------------------------------ */

/* Called when all names are known. Sweeps the tiers and saves the manifest. If
 * all names came from the saved manifest, does neither: the origin was not
 * asked, and the saved manifest stays valid until a refresh. */
static void scanned(struct scan *s)
{
	const struct scan_config *c = &s->config;
	struct event e = {.kind = EVENT_SCANNED};
	struct manifest_totals totals;

	manifest_totals(c->manifest, &totals);
	e.n = totals.files;
	event_report(log_sink(c->log), &e);
	/* Wait until all directories of the tiers have been read. */
	store_wait_ready(c->saved.store);
	limits_of_tiers(c->saved.store, limit_report, c->log);
	if (!c->memory_short)
		(void)limits_of_memory(c->saved.store, c->staging_bytes,
			totals.files, limit_report, c->log);
	stack_listed(c->stack);
	if (tree_generation(c->tree) > 0 || c->recovered) {
		scan_sweep(s);
		scan_save(s);
	}
	atomic_store(&s->state, SCAN_COMPLETE);
}

static void report_unlisted(
	const struct scan_config *c, const struct tree_walk_result *result)
{
	struct event e = {.kind = EVENT_SCAN_INCOMPLETE};
	char text[sizeof(struct error) + 64];
	struct error why;

	(void)tree_walk_error(c->tree, result, &why);
	(void)snprintf(text, sizeof(text), "%s; %s", why.msg,
		result->unasked == -E2BIG ? "trying again in an hour"
					  : "trying again in a minute");
	e.text = text;
	event_report(log_sink(c->log), &e);
}

static void *scan_main(void *arg)
{
	struct scan *s = OBJECT(scan, arg);
	const struct scan_config *c = &s->config;
	struct tree_walk_result result;

	while (!scan_is_stopping(s)) {
		if (tree_walk(c->tree, NODE_ROOT, stack_must_relist(c->stack),
			    &result) < 0)
			break;
		pthread_mutex_lock(&s->lock);
		s->unlisted = result;
		pthread_mutex_unlock(&s->lock);
		if (result.failed == 0) {
			scanned(s);
			break;
		}
		report_unlisted(c, &result);
		atomic_store(&s->state, SCAN_INCOMPLETE);
		wait_for_next(s,
			result.unasked == -E2BIG ? SCAN_FULL_AGAIN_NS
						 : SCAN_AGAIN_NS);
	}
	return NULL;
}

/* -- Life ---------------------------------------------------------------- */

int scan_new(struct scan **out, const struct scan_config *config)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	MAGIC_BEGIN(s, scan);
	s->config = *config;
	s->unsaved = config->recovered;
	lock_init(&s->sweep_lock, RANK_SWEEP);
	lock_init(&s->lock, RANK_SCAN);
	cond_init(&s->cond);
	*out = s;
	return 0;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	(void)pthread_cond_destroy(&s->cond); /* no thread waits any more */
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_mutex_destroy(&s->sweep_lock);
	MAGIC_END(s);
	free(s);
}

/* The manifest calls this, with its lock held, when its record of changes has
 * become long. */
static void names_full(void *arg)
{
	struct scan *s = OBJECT(scan, arg);
	LOCK_SCOPE(&s->lock);

	s->full = true;
	pthread_cond_broadcast(&s->cond);
}

/* Main function of the saver. When the record of changes has become long, the
 * saver saves the manifest, because that empties the record and frees its
 * memory. */
static void *saver_main(void *arg)
{
	struct scan *s = OBJECT(scan, arg);

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->stopping && !s->full)
			pthread_cond_wait(&s->cond, &s->lock);
		if (s->stopping)
			break;
		s->full = false;
		s->unsaved = true;
		pthread_mutex_unlock(&s->lock);
		scan_save(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int scan_start(struct scan *s, struct error *err)
{
	int rc = pthread_create(&s->thread, NULL, scan_main, s);

	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	s->started = true;
	rc = pthread_create(&s->saver, NULL, saver_main, s);
	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	s->saving = true;
	manifest_when_full(s->config.manifest, names_full, s);
	return 0;
}

void scan_quit(struct scan *s)
{
	LOCK_SCOPE(&s->lock);

	s->stopping = true;
	pthread_cond_broadcast(&s->cond);
}

void scan_join(struct scan *s)
{
	if (s && s->started)
		pthread_join(s->thread, NULL);
	if (s && s->saving)
		pthread_join(s->saver, NULL);
}

enum scan_state scan_state(const struct scan *s)
{
	return (enum scan_state)atomic_load(&s->state);
}

void scan_unlisted(struct scan *s, struct tree_walk_result *out)
{
	LOCK_SCOPE(&s->lock);

	*out = s->unlisted;
}

/* -- Names for the stack, from the manifest ------------------------------- */

static bool names_known(void *arg, const char *path, struct file_attr *attr)
{
	struct node_info info;

	if (manifest_resolve(arg, path, &info) < 0)
		return false;
	*attr = info.attr;
	return true;
}

static bool names_root(void *arg, struct file_attr *attr)
{
	struct node_info root;

	if (manifest_get(arg, NODE_ROOT, &root) < 0 || !root.listed)
		return false;
	*attr = root.attr;
	return true;
}

static void names_put_root(void *arg, const struct file_attr *attr)
{
	manifest_put_root(arg, attr);
}

int scan_probe(
	struct stack *stack, struct manifest *manifest, struct error *err)
{
	const struct stack_names names = {
		.known = names_known,
		.root = names_root,
		.put_root = names_put_root,
		.arg = manifest,
	};

	return stack_probe(stack, &names, err);
}
