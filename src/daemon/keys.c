/* SPDX-License-Identifier: MIT */
/*
 * What entries are called, for a loader that opens them in the tiers by
 * itself. Runs on the connection's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/mount.h"

/* The answer is several times as long as the request. */
#define KEYS_MAX 65536u

static json_t *key_of(struct names *n, const json_t *name)
{
	struct cache_item item = {.base = 0};
	struct node_info info;
	struct hash128 key;
	char text[33];

	if (names_find(n, name, &info) < 0 || info.attr.kind != KIND_FILE)
		return json_null();
	item.digest = info.digest;
	item.version = info.attr.version;
	item.cookie = info.id;
	cache_item_at(n->m->cache, 0, &item);
	if (item.size < item.version.size_bytes)
		return json_pack("{s:I, s:I}", "size",
			(json_int_t)item.version.size_bytes, "chunk",
			(json_int_t)item.size);
	if (item.size == 0)
		return json_pack("{s:i}", "size", 0);
	key = cache_key(n->m->cache, &item);
	(void)snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, key.hi,
		key.lo);
	return json_pack("{s:s, s:I}", "key", text, "size",
		(json_int_t)item.version.size_bytes);
}

void command_keys(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const json_t *paths = json_object_get(request, "paths");
	/* Who opens what is in the tiers need not wait for the source to be
	 * listed: what is not known yet is read through the mount. */
	struct names names = {.m = arg, .listed = true};
	json_t *keys;

	if (!json_is_array(paths) || json_array_size(paths) > KEYS_MAX) {
		(void)ctl_fail(conn,
			"\"paths\" must be an array of at most %u names",
			KEYS_MAX);
		return;
	}
	keys = json_array();
	for (size_t i = 0; i < json_array_size(paths); i++)
		(void)json_array_append_new(
			keys, key_of(&names, json_array_get(paths, i)));
	(void)ctl_send(conn, json_pack("{s:b, s:o}", "ok", 1, "keys", keys));
}
