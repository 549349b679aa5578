/* SPDX-License-Identifier: MIT */
/*
 * Warming: fetches every item of the given paths into the tiers, a limited
 * number at a time, and reports the progress. Cached items are skipped, so an
 * interrupted warming continues where it stopped.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

#define WARM_ITEMS_MAX 128u
#define PROGRESS_NS (200 * NS_PER_MS)
/* Time between two checks whether there is room. */
#define AWAIT_MS 5
/* Number of rounds, if files change while they are fetched. */
#define ROUNDS_MAX 3u

struct warm_count {
	uint64_t items, bytes;
};

struct warm {
	const struct warming *of;
	struct ctl_conn *conn;
	/* Only the thread of the command uses these. */
	struct warm_count total, already, not_fitting;
	struct warm_count earlier; /* cached in earlier rounds */
	struct tree_walk_result unlisted;
	/* Paths that the source does not have, and the first of them */
	uint64_t unknown;
	char *first_unknown;
	/* Bitmap of the files of this round that were counted, so that a file
	 * below two paths counts once */
	uint8_t *seen;
	size_t seen_bytes;
	uint64_t files;
	uint64_t told_ns;
	bool gone;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	unsigned out; /* number of items being fetched */
	uint64_t out_bytes;
	/* `late`: the tier had space at first, but another item took it */
	struct warm_count cached, failed, late;
	/* How many of `failed` were items of which the source had another
	 * version */
	uint64_t changed;
	node_id failed_file; /* the file of the first failed item */
	int failed_status;   /* the reason, as -errno */
};

struct warm_item {
	struct cache_warm w;
	struct warm *warm;
	uint64_t bytes;
	node_id file;
};

static void count(struct warm_count *c, uint64_t bytes)
{
	c->items++;
	c->bytes += bytes;
}

static void count_failed(
	struct warm *k, uint64_t bytes, node_id file, int status)
{
	ASSERT_HELD(&k->lock);
	if (k->failed.items == 0) {
		k->failed_file = file;
		k->failed_status = status;
	}
	count(&k->failed, bytes);
	k->changed += status == -ESTALE;
}

static void item_done(struct cache_warm *w, int status)
{
	struct warm_item *i = CONTAINER_OF(w, struct warm_item, w);
	struct warm *k = i->warm;

	pthread_mutex_lock(&k->lock);
	if (status == 0)
		count(&k->cached, i->bytes);
	else if (status == -ENOSPC)
		count(&k->late, i->bytes);
	else
		count_failed(k, i->bytes, i->file, status);
	k->out--;
	k->out_bytes -= i->bytes;
	pthread_cond_signal(&k->cond);
	pthread_mutex_unlock(&k->lock);
	free(i);
}

static void warm_tell(struct warm *k, bool scanning)
{
	uint64_t now_ns = clock_now_ns();
	struct warm_count done;

	if (now_ns < k->told_ns + PROGRESS_NS)
		return;
	k->told_ns = now_ns;
	pthread_mutex_lock(&k->lock);
	done.items = k->cached.items + k->failed.items + k->late.items;
	done.bytes = k->cached.bytes + k->failed.bytes + k->late.bytes;
	pthread_mutex_unlock(&k->lock);
	done.items += k->already.items + k->not_fitting.items;
	done.bytes += k->already.bytes + k->not_fitting.bytes;
	if (ctl_gone(k->conn) ||
		ctl_send(k->conn,
			json_pack("{s:b, s:I, s:I, s:I, s:I, s:b}", "progress",
				1, "items_done", (json_int_t)done.items,
				"items_total", (json_int_t)k->total.items,
				"bytes_done", (json_int_t)done.bytes,
				"bytes_total", (json_int_t)k->total.bytes,
				"scanning", scanning)) < 0)
		k->gone = true;
}

/* Report progress, and wait until fewer items and bytes than these limits are
 * being fetched. */
static void wait_below(struct warm *k, unsigned items, uint64_t bytes)
{
	for (;;) {
		pthread_mutex_lock(&k->lock);
		if (k->out < items && (k->out == 0 || k->out_bytes < bytes)) {
			pthread_mutex_unlock(&k->lock);
			return;
		}
		(void)cond_wait_until(
			&k->cond, &k->lock, clock_now_ns() + PROGRESS_NS);
		pthread_mutex_unlock(&k->lock);
		warm_tell(k, false);
	}
}

/* Wait while a cache may soon have room for the item. */
static void await_room(struct warm *k, const struct cache_item *item)
{
	const struct timespec wait = {.tv_nsec = AWAIT_MS * NS_PER_MS};

	while (!k->gone && store_room_comes(k->of->store, item->size)) {
		(void)nanosleep(&wait, NULL); /* an early return is harmless */
		warm_tell(k, false);
	}
}

static void start_item(struct warm *k, const struct cache_item *item)
{
	struct warm_item *i = malloc(sizeof(*i));
	int rc = -ENOMEM;

	pthread_mutex_lock(&k->lock);
	k->out++;
	k->out_bytes += item->size;
	pthread_mutex_unlock(&k->lock);
	if (i) {
		i->w.done = item_done;
		i->warm = k;
		i->bytes = item->size;
		i->file = (node_id)item->cookie;
		rc = cache_warm(k->of->cache, item, &i->w);
	}
	if (rc == 0)
		return;
	free(i);
	pthread_mutex_lock(&k->lock);
	k->out--;
	k->out_bytes -= item->size;
	if (rc != -EEXIST && rc != -ENOSPC)
		count_failed(k, item->size, (node_id)item->cookie, rc);
	pthread_mutex_unlock(&k->lock);
	if (rc == -EEXIST)
		count(&k->already, item->size);
	else if (rc == -ENOSPC)
		count(&k->not_fitting, item->size);
}

static bool warm_item(void *arg, const struct cache_item *item)
{
	struct warm *k = arg;

	warm_tell(k, false);
	wait_below(k, WARM_ITEMS_MAX, cache_ahead_bytes(k->of->cache));
	await_room(k, item);
	if (!k->gone)
		start_item(k, item);
	return !k->gone;
}

static void count_file(struct warm *k, const struct node_info *info)
{
	struct cache_item first = {.version = info->attr.version};
	uint64_t bytes = info->attr.version.size_bytes;

	k->files++;
	if (bytes == 0)
		return;
	cache_item_at(k->of->cache, 0, &first);
	k->total.items += bytes / first.size + (bytes % first.size > 0);
	k->total.bytes += bytes;
}

static void warm_file(struct warm *k, const struct node_info *info)
{
	(void)scan_items(k->of->scan, info, warm_item, k);
}

/* Note a file in the bitmap. Returns false if it was there. If memory is short,
 * the file may count twice. */
static bool warm_see(struct warm *k, node_id file)
{
	uint8_t bit = (uint8_t)(1u << file % 8);

	if (ARRAY_ROOM_ZEROED(k->seen, file / 8, &k->seen_bytes) < 0)
		return true;
	if (k->seen[file / 8] & bit)
		return false;
	k->seen[file / 8] |= bit;
	return true;
}

typedef void warm_file_fn(struct warm *k, const struct node_info *info);

static void warm_node(struct warm *k, node_id id, warm_file_fn *fn)
{
	struct node_info info;

	if (manifest_get(k->of->manifest, id, &info) == 0 && !info.retired &&
		info.attr.kind == KIND_FILE && warm_see(k, id))
		fn(k, &info);
}

/* Call fn for every file below the nodes, once. */
static void each_file(
	struct warm *k, const node_id *top, size_t n, warm_file_fn *fn)
{
	struct manifest *mf = k->of->manifest;
	struct node_info info;

	if (k->seen)
		memset(k->seen, 0, k->seen_bytes);
	for (size_t i = 0; i < n && !k->gone; i++) {
		if (manifest_get(mf, top[i], &info) < 0)
			continue;
		if (info.attr.kind != KIND_DIR)
			warm_node(k, top[i], fn);
		else
			for (node_id id = NODE_ROOT;
				id < manifest_end(mf) && !k->gone; id++)
				if (manifest_is_under(mf, id, top[i]))
					warm_node(k, id, fn);
	}
}

/* Count a path that the source does not have. */
static int warm_unknown(struct warm *k, char **path)
{
	if (k->unknown++ == 0)
		k->first_unknown = steal_ptr(path);
	return -ENOENT;
}

/* Find the node of a path, and list everything below it. Returns -ENOENT
 * without a message if the source does not have the path. */
static int warm_find(
	struct warm *k, const json_t *value, node_id *top, struct error *err)
{
	struct tree_walk_result result;
	CLEANUP_FREE char *path = NULL;
	struct node_info info;
	int rc = 0;

	if (value)
		rc = ctl_path_get(value, &path);
	if (rc < 0)
		return error_set(err, rc, "a path is malformed");
	if (path && manifest_resolve(k->of->manifest, path, &info) < 0)
		rc = tree_refresh(k->of->tree, path, &result, NULL);
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, rc, "cannot warm '%s': %m", path);
	if (manifest_resolve(k->of->manifest, path ? path : "", &info) < 0)
		return warm_unknown(k, &path);
	*top = info.id;
	if (info.attr.kind != KIND_DIR)
		return 0;
	warm_tell(k, true);
	rc = tree_walk(k->of->tree, info.id, false, &result);
	if (rc < 0)
		return error_set(
			err, rc, "cannot warm '%s': %m", path ? path : "/");
	/* Some directories could not be listed. Fetch the files that are known.
	 */
	tree_walk_add_failed(&k->unlisted, &result);
	return 0;
}

static void add_failed_why(json_t *reply, struct warm *k)
{
	char path[TREE_SHOWN_MAX];
	struct error why;

	if (k->failed.items == 0)
		return;
	tree_show_path(k->of->tree, k->failed_file, path);
	(void)error_set(&why, k->failed_status, "%s'%s': %m",
		k->failed.items == 1 ? "" : "first of ", path);
	(void)json_object_set_new(reply, "failed_why", ctl_text_new(why.msg));
}

static void add_unknown(json_t *reply, const struct warm *k)
{
	struct error why;

	ctl_set_number(reply, "unknown", k->unknown);
	if (k->unknown == 0)
		return;
	(void)error_set(&why, -ENOENT, "'%s': the source has no such name",
		k->first_unknown);
	(void)json_object_set_new(reply, "unknown_why", ctl_text_new(why.msg));
}

static void send_result(struct warm *k)
{
	json_t *reply = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"ok", 1, "files", (json_int_t)k->files, "cached_items",
		(json_int_t)(k->cached.items + k->already.items),
		"cached_bytes",
		(json_int_t)(k->cached.bytes + k->already.bytes),
		"already_items",
		(json_int_t)(k->already.items - k->earlier.items),
		"not_fitting_items",
		(json_int_t)(k->not_fitting.items + k->late.items),
		"not_fitting_bytes",
		(json_int_t)(k->not_fitting.bytes + k->late.bytes),
		"failed_items", (json_int_t)k->failed.items);

	add_failed_why(reply, k);
	add_unknown(reply, k);
	status_add_unlisted(reply, k->of->tree, "unlisted", &k->unlisted);
	(void)ctl_send(k->conn, reply);
}

/* Find the nodes of all paths, or the root if there are none. Returns their
 * number, or -errno. */
static ssize_t find_tops(
	struct warm *k, const json_t *paths, node_id *top, struct error *err)
{
	size_t n = json_array_size(paths), found = 0;

	for (size_t i = 0; i < (n ? n : 1); i++) {
		int rc = warm_find(k, n ? json_array_get(paths, i) : NULL,
			&top[found], err);

		if (rc < 0 && rc != -ENOENT)
			return rc;
		found += rc == 0;
	}
	return (ssize_t)found;
}

static int run_round(struct warm *k, const json_t *paths, struct error *err)
{
	size_t n = json_array_size(paths);
	CLEANUP_FREE node_id *top = calloc(n ? n : 1, sizeof(*top));
	ssize_t found = top ? find_tops(k, paths, top, err)
			    : error_set(err, -ENOMEM, "cannot warm: %m");

	if (found < 0)
		return (int)found;
	each_file(k, top, (size_t)found, count_file);
	each_file(k, top, (size_t)found, warm_file);
	wait_below(k, 1, 0);
	return 0;
}

/* Refresh the paths from the source. A failure is ignored here: files that
 * cannot be reached will fail in the next round. */
static void refresh_paths(struct warm *k, const json_t *paths)
{
	size_t n = json_array_size(paths);
	struct tree_walk_result result;

	for (size_t i = 0; i < (n ? n : 1); i++) {
		CLEANUP_FREE char *path = NULL;

		if (n && ctl_path_get(json_array_get(paths, i), &path) < 0)
			continue;
		(void)tree_refresh(
			k->of->tree, path ? path : "", &result, NULL);
	}
}

/* Begin another round for files that have changed at the source. Returns false
 * if there are none. */
static bool begin_again(struct warm *k)
{
	LOCK_SCOPE(&k->lock);

	if (k->changed == 0 || k->gone)
		return false;
	k->earlier.items += k->cached.items;
	k->earlier.bytes += k->cached.bytes;
	k->cached = k->failed = k->late = (struct warm_count){0};
	k->total = k->already = k->not_fitting = (struct warm_count){0};
	k->unlisted = (struct tree_walk_result){0};
	k->files = k->changed = k->unknown = 0;
	free(steal_ptr(&k->first_unknown));
	return true;
}

static int warm_run(struct warm *k, const json_t *paths, struct error *err)
{
	int rc;

	store_wait_ready(k->of->store);
	rc = run_round(k, paths, err);
	for (unsigned i = 1; rc == 0 && i < ROUNDS_MAX && begin_again(k); i++) {
		refresh_paths(k, paths);
		rc = run_round(k, paths, err);
	}
	return rc;
}

void command_warm(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct warm k = {
		.of = OBJECT(warming, arg),
		.conn = conn,
		.lock = LOCK_INIT(RANK_WARM),
	};
	const json_t *paths;
	struct error err;

	if (!command_paths(conn, request, &paths))
		return;
	cond_init(&k.cond);
	if (warm_run(&k, paths, &err) < 0)
		(void)ctl_fail(conn, "%s", err.msg);
	else
		send_result(&k);
	(void)pthread_cond_destroy(&k.cond);
	free(k.first_unknown);
	free(k.seen);
}
