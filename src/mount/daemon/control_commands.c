/* SPDX-License-Identifier: MIT */
/*
 * The commands of the control socket; doc/control-protocol.md describes them.
 * Each command runs on the thread of its connection, and may take long.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/magic.h"

static void command_status(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)request; /* the command has no arguments */
	(void)ctl_send(conn,
		json_pack("{s:b, s:o}", "ok", 1, "status",
			mount_status(OBJECT(mount, arg))));
}

static void command_debug(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)request; /* the command has no arguments */
	(void)ctl_send(conn,
		json_pack("{s:b, s:o}", "ok", 1, "debug",
			mount_debug(OBJECT(mount, arg))));
}

static void add_result(
	struct tree_walk_result *sum, const struct tree_walk_result *one)
{
	sum->directories += one->directories;
	sum->changed += one->changed;
	sum->added += one->added;
	sum->removed += one->removed;
	tree_walk_add_failed(sum, one);
}

static int refresh_one(struct mount *m, const json_t *value,
	struct tree_walk_result *sum, struct error *err)
{
	struct tree_walk_result one;
	CLEANUP_FREE char *path = NULL;
	int rc = ctl_path_get(value, &path);

	if (rc < 0)
		return error_set(err, rc, "a path is malformed");
	rc = tree_refresh(m->tree, path, &one, err);
	if (rc == 0)
		add_result(sum, &one);
	return rc;
}

bool command_paths(
	struct ctl_conn *conn, const json_t *request, const json_t **paths)
{
	*paths = json_object_get(request, "paths");
	if (!*paths || json_is_array(*paths))
		return true;
	(void)ctl_fail(conn, "\"paths\" must be an array of names");
	return false;
}

static void report_refresh(struct mount *m, const struct tree_walk_result *sum)
{
	struct event e = {.kind = EVENT_REFRESHED,
		.n = sum->changed + sum->added + sum->removed};

	event_report(m->events, &e);
}

static void command_refresh(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct mount *m = OBJECT(mount, arg);
	const json_t *paths;
	struct tree_walk_result sum = {0};
	struct error err;
	json_t *reply;
	bool all;
	int rc = 0;

	if (!command_paths(conn, request, &paths))
		return;
	all = json_array_size(paths) == 0;
	if (all)
		rc = tree_refresh(m->tree, "", &sum, &err);
	for (size_t i = 0; rc == 0 && i < json_array_size(paths); i++) {
		/* Once the source has not answered in time, do not ask it for
		 * the remaining paths: count each of them as failed. */
		if (sum.unasked == -ETIMEDOUT)
			sum.failed++;
		else
			rc = refresh_one(
				m, json_array_get(paths, i), &sum, &err);
	}
	if (rc < 0) {
		(void)ctl_fail(conn, "%s", err.msg);
		return;
	}
	/* All names are known now, so delete entries that belong to no name.
	 * For example, a mount that was killed may have left some. */
	if (all && sum.failed == 0)
		scan_sweep(m->scan);
	scan_save(m->scan);
	report_refresh(m, &sum);
	reply = json_pack("{s:b, s:I, s:I, s:I, s:I}", "ok", 1, "directories",
		(json_int_t)sum.directories, "changed", (json_int_t)sum.changed,
		"added", (json_int_t)sum.added, "removed",
		(json_int_t)sum.removed);
	status_add_unlisted(reply, m->tree, "unreachable", &sum);
	(void)ctl_send(conn, reply);
}

static void report_faults(struct mount *m, const char *spec)
{
	struct event e = {.kind = EVENT_FAULTS, .text = spec};

	event_report(m->events, &e);
}

static void command_fault(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct mount *m = OBJECT(mount, arg);
	const char *spec = json_string_value(json_object_get(request, "spec"));
	struct error err;

	if (!spec) {
		(void)ctl_fail(conn, "\"spec\" must be a string");
		return;
	}
	if (stack_fault(m->stack, spec, &err) < 0) {
		(void)ctl_fail(conn, "%s", err.msg);
		return;
	}
	report_faults(m, spec);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

static void command_not_analysed(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	(void)ctl_fail(conn,
		"this mount cannot be analysed; mount it with --analysis, or "
		"use refrain analyze");
}

/* Commands of an analysis, for a mount that is not under analysis: they fail.
 */
static const struct ctl_command not_analysed[] = {
	{"mask", command_not_analysed, NULL},
	{"content", command_not_analysed, NULL},
	{"rates", command_not_analysed, NULL},
	{NULL, NULL, NULL},
};

static void list_commands(struct mount *m, struct ctl_command out[COMMANDS_MAX])
{
	const struct ctl_command commands[] = {
		{"status", command_status, m},
		{"debug", command_debug, m},
		{"warm", command_warm, &m->warming},
		{"refresh", command_refresh, m},
		{"fault", command_fault, m},
		{"upgrade", command_upgrade, m},
		{"trace", command_trace, &m->tracing},
		{"keys", command_keys, &m->loaders},
		{"report", command_report, &m->loaders},
		{"plan", command_plan, &m->loaders},
		{"plan-add", command_plan_add, NULL},
		{"plan-progress", command_plan_progress, NULL},
		{"plan-status", command_plan_status, NULL},
		{"plan-follow", command_plan_follow, NULL},
		{"plan-drop", command_plan_drop, NULL},
	};
	const struct ctl_command *more =
		m->options.hooks ? m->options.hooks->commands : not_analysed;
	size_t n = sizeof(commands) / sizeof(*commands);

	_Static_assert(sizeof(commands) + sizeof(not_analysed) <=
			COMMANDS_MAX * sizeof(*out),
		"as many commands as there is room for");
	memcpy(out, commands, sizeof(commands));
	while (more->name)
		out[n++] = *more++;
	out[n] = (struct ctl_command){NULL, NULL, NULL};
}

void commands_build(struct mount *m)
{
	m->warming = (struct warming){
		.magic = MAGIC_warming,
		.manifest = m->manifest,
		.tree = m->tree,
		.cache = m->cache,
		.store = m->store,
		.scan = m->scan,
	};
	m->tracing.magic = MAGIC_tracing;
	m->tracing.manifest = m->manifest;
	m->tracing.counters = &m->counters;
	m->loaders = (struct loaders){
		.magic = MAGIC_loaders,
		.manifest = m->manifest,
		.tree = m->tree,
		.scan = m->scan,
		.cache = m->cache,
		.plans = m->plans,
		.hooks = m->options.hooks,
		.counters = &m->counters,
	};
	list_commands(m, m->commands);
}
