/* SPDX-License-Identifier: MIT */
/*
 * Counts that loaders report: reads of entries that they opened in a tier
 * themselves, which the mount cannot see. Runs on a control connection.
 */
#include <errno.h>
#include <stdint.h>

#include "daemon/mount_impl.h"

#define COUNT_MAX ((json_int_t)1 << 53)

/* A count since the last report; 0 if it is not in the request. */
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

int report_take(struct mount *m, const json_t *request, struct error *err)
{
	uint64_t hits, bytes;
	int rc = get_count(request, "direct_hits", &hits, err);

	if (rc == 0)
		rc = get_count(request, "direct_hit_bytes", &bytes, err);
	if (rc < 0)
		return rc;
	COUNT_ADD(&m->counters, direct_hits, hits);
	COUNT_ADD(&m->counters, direct_hit_bytes, bytes);
	return 0;
}

void command_report(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct error err = {""};

	if (report_take(arg, request, &err) < 0)
		(void)ctl_fail(conn, "%s", err.msg);
	else
		(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}
