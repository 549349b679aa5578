/* SPDX-License-Identifier: MIT */
/* Commands for loaders that open entries in the tiers themselves. Such a loader
 * asks for the names of entries. It also reports what it has read, because the
 * mount does not see these reads. This file also finds the names in other
 * commands that contain many names. Runs on the thread of the connection. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/magic.h"
#include "mount/daemon/mount_impl.h"

/* Limit for the names in one request. An answer is several times as long as its
 * request. */
#define KEYS_MAX 65536u
#define KEY_BYTES 96

#define COUNT_MAX ((json_int_t)1 << 53)

/* -- Names ----------------------------------------------------------------- */

/* List the whole source, because a new mount may not know all names yet. This
 * is done at most once in a request. */
static bool list_all(struct request_names *n)
{
	struct tree_walk_result result;

	if (n->listed || !n->of->scan ||
		scan_state(n->of->scan) != SCAN_RUNNING)
		return false;
	n->listed = true;
	return tree_walk(n->of->tree, NODE_ROOT, false, &result) == 0;
}

int names_find(
	struct request_names *n, const json_t *name, struct node_info *info)
{
	const char *path = json_string_value(name);
	CLEANUP_FREE char *bytes = NULL;
	int rc;

	if (!path) {
		if (ctl_path_get(name, &bytes) < 0)
			return -EINVAL;
		path = bytes;
	}
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	rc = manifest_resolve(n->of->manifest, path, info);
	if (rc < 0 && list_all(n))
		rc = manifest_resolve(n->of->manifest, path, info);
	return rc < 0 ? -ENOENT : 0;
}

/* -- Keys ------------------------------------------------------------------ */

/* Write an element of the answer and a comma. Returns their length. */
static int put_key(struct request_names *n, const json_t *name, char *at)
{
	struct cache_item item = {.base = 0};
	struct node_info info;
	char key[33] = "";

	if (names_find(n, name, &info) < 0 || info.attr.kind != KIND_FILE)
		return snprintf(at, KEY_BYTES, "null,");
	item.digest = info.digest;
	item.version = info.attr.version;
	item.cookie = info.id;
	cache_item_at(n->of->cache, 0, &item);
	if (item.size < item.version.size_bytes)
		return snprintf(at, KEY_BYTES,
			"{\"size\":%" PRIu64 ",\"chunk\":%" PRIu64 "},",
			item.version.size_bytes, item.size);
	if (item.size == 0)
		return snprintf(at, KEY_BYTES, "{\"size\":0},");
	(void)hash128_put(key, cache_key(n->of->cache, &item));
	return snprintf(at, KEY_BYTES, "{\"key\":\"%s\",\"size\":%" PRIu64 "},",
		key, item.version.size_bytes);
}

/* Send the keys. The answer is written as text, because it has many elements of
 * the same form. */
static int send_keys(
	struct request_names *n, struct ctl_conn *conn, const json_t *paths)
{
	static const char head[] = "{\"ok\":true,\"keys\":[", tail[] = "]}";
	size_t count = json_array_size(paths);
	CLEANUP_FREE char *text =
		malloc(sizeof(head) + count * KEY_BYTES + sizeof(tail));
	char *at = text;

	if (!text)
		return -ENOMEM;
	memcpy(at, head, sizeof(head) - 1);
	at += sizeof(head) - 1;
	for (size_t i = 0; i < count; i++)
		at += put_key(n, json_array_get(paths, i), at);
	at -= count > 0; /* remove the last comma */
	memcpy(at, tail, sizeof(tail) - 1);
	at += sizeof(tail) - 1;
	return ctl_send_text(conn, text, (size_t)(at - text));
}

bool loader_refused(const struct loaders *of, struct ctl_conn *conn)
{
	if (!of->hooks)
		return false;
	of->hooks->refused(of->hooks->arg);
	(void)ctl_fail(conn,
		"this mount is being analysed, so nothing may be read or "
		"planned past it; read the files through it");
	return true;
}

void command_keys(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const json_t *paths = json_object_get(request, "paths");
	/* `listed` is set, so that a name that is not known does not cause a
	 * listing of the source, for which the loader would wait. It reads
	 * files without a key through the mount. */
	struct request_names names = {.of = arg, .listed = true};

	if (loader_refused(names.of, conn))
		return;
	if (!json_is_array(paths) || json_array_size(paths) > KEYS_MAX) {
		(void)ctl_fail(conn,
			"\"paths\" must be an array of at most %u names",
			KEYS_MAX);
		return;
	}
	(void)send_keys(&names, conn, paths);
}

/* -- Counts ---------------------------------------------------------------- */

/* Get a count from a request; 0 if the request does not contain it. */
static int get_count(const json_t *request, const char *name, uint64_t *out,
	struct error *err)
{
	const json_t *value = json_object_get(request, name);

	*out = 0;
	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		json_integer_value(value) > COUNT_MAX)
		return error_set(err, -EINVAL,
			"\"%s\" must be a whole number of at most %lld", name,
			(long long)COUNT_MAX);
	*out = (uint64_t)json_integer_value(value);
	return 0;
}

int report_take(
	struct counters *counters, const json_t *request, struct error *err)
{
	uint64_t hits, bytes;
	int rc = get_count(request, "direct_hits", &hits, err);

	if (rc == 0)
		rc = get_count(request, "direct_hit_bytes", &bytes, err);
	if (rc < 0)
		return rc;
	COUNT_ADD(counters, direct_hits, hits);
	COUNT_ADD(counters, direct_hit_bytes, bytes);
	return 0;
}

void command_report(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const struct loaders *loaders = OBJECT(loaders, arg);
	struct error err = {""};

	if (report_take(loaders->counters, request, &err) < 0)
		(void)ctl_fail(conn, "%s", err.msg);
	else
		(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}
