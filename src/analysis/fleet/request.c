/* SPDX-License-Identifier: MIT */
/* Sends requests to the daemon, and reads members of its answers. No state. */
#include "analysis/fleet/request.h"
#include "mount/daemon/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "common/base/escape.h"
#include "common/base/latency.h"

int ask(const char *mountpoint, json_t *request, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err)
{
	struct ctl_client *client;
	int rc = ctl_connect(&client, mountpoint, err);

	if (rc < 0) {
		json_decref(request);
		return rc;
	}
	rc = ctl_request(client, request, 0, progress, arg, reply, err);
	ctl_disconnect(client);
	return rc;
}

int ask_status(struct ctl_client *client, json_t **status, struct error *err)
{
	json_t *reply = NULL;
	int rc = ctl_request(client, json_pack("{s:s}", "cmd", "status"),
		STATUS_TIMEOUT_S, NULL, NULL, &reply, err);

	if (rc < 0)
		return rc;
	*status = json_incref(json_object_get(reply, "status"));
	json_decref(reply);
	if (!json_is_object(*status)) {
		json_decref(*status);
		return error_set(
			err, -EBADMSG, "the daemon answered without a status");
	}
	return 0;
}

/* Returns the path relative to the mount's root, "" for the root itself. */
static const char *inside(const char *mountpoint, const char *path)
{
	size_t len = strlen(mountpoint);

	while (len > 1 && mountpoint[len - 1] == '/')
		len--;
	if (strncmp(path, mountpoint, len) == 0 &&
		(path[len] == '/' || !path[len]))
		path += len;
	while (*path == '/' || (*path == '.' && (path[1] == '/' || !path[1])))
		path++;
	return path;
}

json_t *ask_about_paths(
	const char *cmd, const char *mountpoint, char **paths, int npaths)
{
	json_t *list = json_array();

	for (int i = 0; i < npaths; i++) {
		const char *path = inside(mountpoint, paths[i]);

		/* The root stands for the whole mount, and so does an empty
		 * list. */
		if (!*path) {
			(void)json_array_clear(list);
			break;
		}
		if (json_array_append_new(list, ctl_path_new(path)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return json_pack("{s:s,s:o}", "cmd", cmd, "paths", list);
}

uint64_t ask_number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

const char *ask_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Returns the number of durations in a bucket. */
static uint64_t latency_bucket_of(
	const json_t *status, const char *name, size_t i)
{
	const json_t *histogram =
		json_object_get(json_object_get(status, "latency"), name);
	json_int_t n = json_integer_value(
		json_array_get(json_object_get(histogram, "buckets"), i));

	return n > 0 ? (uint64_t)n : 0;
}

void ask_latency(const json_t *now, const json_t *before, const char *name,
	uint64_t *count)
{
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		uint64_t n = latency_bucket_of(now, name, i);
		uint64_t then = latency_bucket_of(before, name, i);

		count[i] += n > then ? n - then : 0;
	}
}

const char *ask_time_text(uint64_t us, char buf[TIME_TEXT_MAX])
{
	if (us < 1000)
		(void)snprintf(buf, TIME_TEXT_MAX, "%" PRIu64 " us", us);
	else if (us < 10 * 1000)
		(void)snprintf(buf, TIME_TEXT_MAX, "%.1f ms", (double)us / 1e3);
	else if (us < 1000 * 1000)
		(void)snprintf(buf, TIME_TEXT_MAX, "%" PRIu64 " ms", us / 1000);
	else
		(void)snprintf(buf, TIME_TEXT_MAX, "%.1f s", (double)us / 1e6);
	return buf;
}

void ask_print(FILE *to, const json_t *object, const char *key)
{
	escape_print(to, ask_text(object, key));
}

void ask_print_json(const json_t *object)
{
	(void)json_dumpf(object, stdout,
		JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
	(void)putchar('\n');
}

const char *ask_plural(uint64_t n, const char *one, const char *more)
{
	return n == 1 ? one : more;
}
