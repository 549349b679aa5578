/* SPDX-License-Identifier: MIT */
/* Builds the object of `refrain status --json`. Runs on a control
 * connection. */
#include "mount/daemon/mount_impl.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* Maximum time to wait for publications. After it, the counters of an epoch
 * that has just ended are complete. */
#define SETTLE_NS NS_PER_S

static uint64_t rss_bytes(void)
{
	unsigned long total, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &total, &resident) != 2)
		resident = 0;
	(void)fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
	CLEANUP_DIR DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (dir && readdir(dir))
		n++;
	/* do not count ".", ".." and the descriptor of this directory */
	return n > 3 ? n - 3 : 0;
}

/* Returns the object of a tier. Its member "dir" is text for people; if this
 * text lacks bytes of the path, the member "dir_bytes" has all of them. */
static json_t *tier_object(const struct tier_status *s)
{
	json_t *o = json_object();
	json_t *path = ctl_path_new(s->dir);

	(void)json_object_set_new(o, "dir", ctl_text_new(s->dir));
	if (json_is_object(path))
		(void)json_object_set(o, "dir_bytes", path);
	json_decref(path);
	ctl_set_number(o, "capacity_bytes", s->capacity_bytes);
	ctl_set_number(o, "used_bytes", s->used_bytes);
	ctl_set_number(o, "reserved_bytes", s->reserved_bytes);
	ctl_set_number(o, "resident_bytes", s->resident_bytes);
	ctl_set_number(o, "entries", s->entries);
	ctl_set_number(o, "tier_errors", s->errors);
	return o;
}

static void add_store(json_t *o, struct mount *m)
{
	struct tier_status sum = {0};
	json_t *tiers = json_array();

	for (size_t i = 0; i < store_tiers(m->store); i++) {
		struct tier_status s;

		store_tier_status(m->store, i, &s);
		sum.capacity_bytes += s.capacity_bytes;
		sum.used_bytes += s.used_bytes;
		sum.resident_bytes += s.resident_bytes;
		sum.entries += s.entries;
		(void)json_array_append_new(tiers, tier_object(&s));
	}
	ctl_set_number(o, "cache_capacity_bytes", sum.capacity_bytes);
	ctl_set_number(o, "cache_used_bytes", sum.used_bytes);
	ctl_set_number(o, "resident_bytes", sum.resident_bytes);
	ctl_set_number(o, "entries", sum.entries);
	(void)json_object_set_new(
		o, "ready", json_boolean(store_ready(m->store)));
	(void)json_object_set_new(o, "tiers", tiers);
}

static void add_cache(json_t *o, struct mount *m)
{
	struct plans_status plans;
	struct cache_status s;

	cache_status(m->cache, &s);
	ctl_set_number(o, "inflight", s.inflight);
	ctl_set_number(o, "parked", s.parked);
	ctl_set_number(o, "parked_longest_ms", s.waits_ns / NS_PER_MS);
	ctl_set_number(o, "surplus_depth", s.surplus_depth);
	ctl_set_number(o, "staging_bytes", s.staging_bytes);
	ctl_set_number(o, "staging_peak_bytes", s.staging_peak_bytes);
	ctl_set_number(o, "staging_capacity_bytes", s.staging_capacity_bytes);
	plans_status(m->plans, &plans);
	ctl_set_number(o, "plans", plans.plans);
	ctl_set_number(o, "plans_admitting", plans.admit_planned);
	ctl_set_number(o, "planned_positions", plans.positions);
	ctl_set_number(o, "planned_bytes", s.planned_bytes);
	ctl_set_number(o, "planned_capacity_bytes", s.planned_capacity_bytes);
}

/* Add whether a new daemon would continue the mount after the death of this
 * one, and how often that has happened. */
static void add_survival(json_t *o, struct mount *m)
{
	(void)json_object_set_new(o, "held", json_string(held_state(m)));
	ctl_set_number(o, "recoveries", session_recoveries(m->session));
	(void)json_object_set_new(
		o, "last_end", json_string(session_last_end(m->session)));
}

static const char *scan_text(struct mount *m)
{
	switch (scan_state(m->scan)) {
	case SCAN_RUNNING:
		return "running";
	case SCAN_COMPLETE:
		return "complete";
	case SCAN_INCOMPLETE:
		return "incomplete";
	}
	return "";
}

void status_add_unlisted(json_t *reply, struct tree *tree, const char *number,
	const struct tree_walk_result *result)
{
	struct error why;

	(void)json_object_set_new(
		reply, number, json_integer((json_int_t)result->failed));
	if (result->failed == 0)
		return;
	(void)tree_walk_error(tree, result, &why);
	(void)json_object_set_new(reply, "unlisted_why", ctl_text_new(why.msg));
}

static void add_scan(json_t *o, struct mount *m)
{
	bool complete = scan_state(m->scan) == SCAN_COMPLETE;
	struct tree_walk_result unlisted;

	scan_unlisted(m->scan, &unlisted);
	(void)json_object_set_new(o, "scan", json_string(scan_text(m)));
	(void)json_object_set_new(o, "scan_complete", json_boolean(complete));
	status_add_unlisted(o, m->tree, "unlisted_directories", &unlisted);
}

static void append_limit(void *arg, const char *sentence)
{
	(void)json_array_append_new(arg, ctl_text_new(sentence));
}

/* Report a holder that would not start a new daemon. Without a report, the user
 * would notice this only when the daemon dies. */
static void limits_of_holder(const char *held, limit_fn *fn, void *arg)
{
	if (strcmp(held, "lost") == 0)
		fn(arg,
			"the mount is not held any more: its refrain-hold was "
			"killed, so that the mount ends with its daemon; "
			"mount again to have another one");
	else if (strcmp(held, "stopped") == 0)
		fn(arg,
			"the mount is not held: its refrain-hold is stopped; "
			"'kill -CONT' lets it go on");
	else if (strcmp(held, "incomplete") == 0)
		fn(arg,
			"the mount is not held: shared memory is short, or too "
			"many names have changed since they were saved");
}

static void add_limits(json_t *o, struct mount *m)
{
	json_t *limits = json_array();
	struct manifest_totals totals;

	manifest_totals(m->manifest, &totals);
	(void)limits_of_memory(m->store, m->options.staging_bytes, totals.files,
		append_limit, limits);
	limits_of_tiers(m->store, append_limit, limits);
	limits_of_kernel(m->fs, append_limit, limits);
	limits_of_holder(held_state(m), append_limit, limits);
	limits_of_source(stack_name(m->stack), m->options.source.insecure_tls,
		append_limit, limits);
	if (m->peering)
		peering_limits(m->peering, append_limit, limits);
	ctl_set_number(o, "read_ahead_kib", fs_read_ahead_kib(m->fs));
	ctl_set_number(o, "prefetch_window_bytes", PREFETCH_WINDOW_MAX_BYTES);
	(void)json_object_set_new(o, "limits", limits);
}

json_t *mount_status(struct mount *m)
{
	CLEANUP_FREE char *faults = stack_faults(m->stack);
	json_t *o = json_object();
	struct manifest_totals totals;

	if (!o)
		return NULL;
	cache_settle(m->cache, SETTLE_NS);
	manifest_totals(m->manifest, &totals);
	(void)json_object_set_new(
		o, "source", ctl_text_new(stack_name(m->stack)));
	(void)json_object_set_new(o, "mountpoint", ctl_text_new(m->mountpoint));
	(void)json_object_set_new(o, "version", json_string(PACKAGE_VERSION));
	ctl_set_number(o, "pid", (uint64_t)getpid());
	ctl_set_number(
		o, "uptime_s", (clock_now_ns() - m->started_ns) / NS_PER_S);
	ctl_set_number(o, "files_known", totals.files);
	ctl_set_number(o, "bytes_known", totals.bytes);
	add_survival(o, m);
	add_scan(o, m);
	add_store(o, m);
	for (const struct counter_info *c = counter_table; c->name; c++)
		ctl_set_number(o, c->name, counter_get(&m->counters, c));
	status_add_latency(o, m->counters.latency);
	add_cache(o, m);
	if (m->peering)
		peering_status(m->peering, m->cache, o);
	else
		status_add_epoch(o, &m->epochs, m->cache,
			scan_state(m->scan) == SCAN_COMPLETE ? totals.bytes
							     : 0);
	ctl_set_number(o, "memory_rss_bytes", rss_bytes());
	ctl_set_number(o, "open_fds", open_fds());
	status_add_errors(o, m->stack, m->log);
	add_limits(o, m);
	if (faults)
		(void)json_object_set_new(o, "fault", ctl_text_new(faults));
	return o;
}
