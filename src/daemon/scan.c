/* SPDX-License-Identifier: MIT */
/*
 * The background scan: lists the whole dataset once, so that statfs is right,
 * later look-ups cost the origin nothing, and entries of versions that ceased
 * while nothing was mounted can be told from the rest. An origin that cannot
 * be reached is not taken for an empty one: the scan is tried again later,
 * and nothing is swept before it has seen everything.
 */
#include "daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"

#define SCAN_AGAIN_NS (60 * NS_PER_S)
/* Limit for look-ups in one file, which may have countless items. */
#define LOOK_UP_ITEMS 65536u

static bool scan_is_stopping(struct mount *m)
{
	bool stopping;

	pthread_mutex_lock(&m->life.lock);
	stopping = m->life.stopping;
	pthread_mutex_unlock(&m->life.lock);
	return stopping;
}

bool mount_items(struct mount *m, const struct node_info *info,
	mount_item_fn *fn, void *arg)
{
	struct cache_item item = {
		.digest = info->digest,
		.version = info->attr.version,
		.cookie = info->id,
	};
	uint64_t off = 0, n = 0;

	while (off < info->attr.version.size_bytes) {
		cache_item_at(m->cache, off, &item);
		if (!fn(arg, &item) ||
			(++n % LOOK_UP_ITEMS == 0 && scan_is_stopping(m)))
			return false;
		off = item.base + item.size;
	}
	return true;
}

static bool keep_item(void *arg, const struct cache_item *item)
{
	struct mount *m = arg;

	cache_keep(m->cache, item);
	return true;
}

void mount_sweep(struct mount *m)
{
	struct node_info info;

	store_wait_ready(m->store);
	LOCK_SCOPE(&m->scan.sweep_lock);
	store_mark(m->store);
	for (node_id id = NODE_ROOT; id < manifest_end(m->manifest); id++) {
		if (id % 1024 == 0 && scan_is_stopping(m))
			return;
		if (manifest_get(m->manifest, id, &info) == 0 &&
			!info.retired && info.attr.kind == KIND_FILE &&
			!mount_items(m, &info, keep_item, m))
			return; /* stopping: not all that exists is marked */
	}
	(void)store_sweep(m->store); /* counted as invalidated */
}

static void wait_for_next(struct mount *m)
{
	uint64_t until = clock_now_ns() + SCAN_AGAIN_NS;

	pthread_mutex_lock(&m->life.lock);
	while (!m->life.stopping &&
		cond_wait_until(&m->life.cond, &m->life.lock, until))
		;
	pthread_mutex_unlock(&m->life.lock);
}

/* -- The manifest that is kept with the cache ----------------------------- */

/* Uses the open directory, checked at the start, as its path may lead elsewhere
 * by now. */
static int last_tier(const struct mount *m)
{
	return store_tier_fd(m->store, m->options.ntiers - 1);
}

/* Damage is counted as such, anything else as an error of the tier. */
static void manifest_failed(struct mount *m, enum event_kind kind, int status)
{
	size_t tier = m->options.ntiers - 1;
	struct event e = {
		.kind = kind, .dir = m->tier_dir[tier], .status = status};

	if (status != -EBADMSG) {
		store_failed(m->store, tier, kind, NULL, status);
		return;
	}
	COUNT(&m->counters, checksum_errors);
	event_report(m->events, &e);
}

int manifest_open(struct mount *m, struct error *err)
{
	int rc = manifest_new(&m->manifest, m->source);

	if (rc == 0)
		rc = manifest_load(m->manifest, last_tier(m));
	if (rc < 0 && rc != -ENOENT && rc != -ENOMEM) {
		/* Damaged, old or not to be read: the scan makes a new one. */
		manifest_failed(m, EVENT_MANIFEST_DAMAGED, rc);
		manifest_free(m->manifest);
		m->manifest = NULL;
		rc = manifest_new(&m->manifest, m->source);
	}
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, rc, "cannot load the manifest: %m");
	return 0;
}

void manifest_keep(struct mount *m)
{
	uint64_t now = tree_generation(m->tree);
	bool changed;
	int rc;

	pthread_mutex_lock(&m->life.lock);
	changed = m->scan.kept < now;
	pthread_mutex_unlock(&m->life.lock);
	if (!changed)
		return;
	rc = manifest_save(m->manifest, last_tier(m));
	if (rc < 0) {
		/* An older one stays; it is tried again, at the end at last. */
		manifest_failed(m, EVENT_MANIFEST_UNSAVED, rc);
		return;
	}
	pthread_mutex_lock(&m->life.lock);
	if (m->scan.kept < now)
		m->scan.kept = now;
	pthread_mutex_unlock(&m->life.lock);
}

/* -- The scan ------------------------------------------------------------ */

/*
 * All names are known. If the manifest that was kept had them, nothing was
 * asked of the origin and it is the truth until a refresh; else it is time to
 * sweep and to keep it.
 */
static void scanned(struct mount *m)
{
	struct event e = {.kind = EVENT_SCANNED};
	struct manifest_totals totals;

	manifest_totals(m->manifest, &totals);
	e.n = totals.files;
	event_report(m->events, &e);
	/* The contents of a tier are known when it has been read. */
	store_wait_ready(m->store);
	limits_of_tiers(m, limit_report, m);
	given_listed(m);
	if (tree_generation(m->tree) > 0) {
		mount_sweep(m);
		manifest_keep(m);
	}
	atomic_store(&m->scan.state, SCAN_COMPLETE);
}

static void report_unlisted(
	struct mount *m, const struct tree_walk_result *result)
{
	struct event e = {.kind = EVENT_SCAN_INCOMPLETE};
	struct error why;

	(void)tree_walk_error(m->tree, result, &why);
	e.text = why.msg;
	event_report(m->events, &e);
}

static void *scan_main(void *arg)
{
	struct mount *m = arg;
	struct tree_walk_result result;

	while (!scan_is_stopping(m)) {
		if (tree_walk(m->tree, NODE_ROOT, m->scan.relist, &result) < 0)
			break;
		pthread_mutex_lock(&m->life.lock);
		m->scan.unlisted = result;
		pthread_mutex_unlock(&m->life.lock);
		if (result.failed == 0) {
			scanned(m);
			break;
		}
		report_unlisted(m, &result);
		atomic_store(&m->scan.state, SCAN_INCOMPLETE);
		wait_for_next(m);
	}
	return NULL;
}

int scan_start(struct mount *m, struct error *err)
{
	int rc = pthread_create(&m->scan.thread, NULL, scan_main, m);

	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	m->scan.started = true;
	return 0;
}

/* The tree has been stopped, so a walk that goes on ends. */
void scan_stop(struct mount *m)
{
	if (m->scan.started)
		pthread_join(m->scan.thread, NULL);
	m->scan.started = false;
}
