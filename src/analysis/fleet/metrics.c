/* SPDX-License-Identifier: MIT */
/* Prints metrics. OpenMetrics requires all samples of a family together, so
 * each family is printed for all mounts before the next one. No state. */
#include "analysis/fleet/metrics.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#include "analysis/fleet/request.h"
#include "common/base/counters.h"
#include "common/base/escape.h"
#include "common/base/latency.h"
#include "mount/daemon/gauges.h"

#define NAME_ROOM 128

/* A unit in the status, and the base unit into which it is converted. */
struct metric_unit {
	const char *suffix, *base;
	double factor;
};

static const struct metric_unit units[] = {
	{"_us", "_seconds", 1e-6},
	{"_ms", "_seconds", 1e-3},
	{"_s", "_seconds", 1},
	{"_pct", "_ratio", 1e-2},
	{"_kib", "_bytes", 1024},
};

/* Gauges of the tables that only grow, so that they become counters, and the
 * names of these. Those of a tier or a peer differ from the counters of the
 * mount. */
static const struct metric_growth {
	const char *prefix, *name, *counter;
} growing[] = {
	{"", "peer_pushes_dropped", "peer_pushes_dropped"},
	{"tier_", "tier_errors", "directory_errors"},
	{"peer_", "evictions", "host_evictions"},
	{"peer_", "hits", "host_hits"},
	{"peer_", "hit_bytes", "host_hit_bytes"},
	{"peer_", "misses", "host_misses"},
	{"peer_", "fills", "host_fills"},
	{"peer_", "fill_bytes", "host_fill_bytes"},
	{"peer_", "refused", "host_refused"},
	{"peer_", "bad", "host_bad"},
	{"peer_", "foreign", "host_foreign"},
	{"peer_", "errors", "host_errors"},
	{"peer_", "dropped", "host_dropped"},
	{"share_", "step", "steps"},
	{"share_", "takeovers", "takeovers"},
	{"share_", "malformed", "malformed_messages"},
};

/* Returns the name of the counter, or NULL for a gauge. */
static const char *counter_of(const char *prefix, const char *name)
{
	for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++)
		if (strcmp(growing[i].prefix, prefix) == 0 &&
			strcmp(growing[i].name, name) == 0)
			return growing[i].counter;
	return NULL;
}

/* Write the name of a family. Returns the factor by which its values are
 * multiplied. */
static double family_name(
	char out[NAME_ROOM], const char *prefix, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const struct metric_unit *u = &units[i];
		size_t n = strlen(u->suffix);

		if (len <= n || strcmp(name + len - n, u->suffix) != 0)
			continue;
		(void)snprintf(out, NAME_ROOM, "refrain_%s%.*s%s", prefix,
			(int)(len - n), name, u->base);
		return u->factor;
	}
	(void)snprintf(out, NAME_ROOM, "refrain_%s%s", prefix, name);
	return 1;
}

/* In OpenMetrics, the name of a family of counters lacks the suffix of its
 * samples. */
static void print_head(FILE *to, const struct metrics *m, const char *family,
	const char *type, const char *help)
{
	const char *suffix =
		!m->openmetrics && strcmp(type, "counter") == 0 ? "_total" : "";

	(void)fprintf(to, "# HELP %s%s %s\n# TYPE %s%s %s\n", family, suffix,
		help, family, suffix, type);
}

/* Print name="value". The value is escaped for a terminal and then for the
 * format. */
static void print_label(FILE *to, const char *name, const char *raw)
{
	char shown[4 * PATH_MAX];
	const char *value = escape_text(shown, sizeof(shown), raw);

	(void)fprintf(to, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			(void)fputc('\\', to);
		(void)fputc(*value, to);
	}
	(void)fputc('"', to);
}

/* Numbers up to 2^53 are exact. */
static void print_value(FILE *to, double value)
{
	(void)fprintf(to, " %.15g\n", value);
}

/* Returns a number, or a boolean as 0 or 1. */
static double value_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_true(v) ? 1 : (double)ask_number(object, key);
}

/* -- Families of mounts ---------------------------------------------------- */

/* Does the status of any mount have this member? A family without samples is
 * not printed. */
static bool any_has(const struct metrics *m, const char *key)
{
	for (size_t i = 0; i < m->nmounts; i++)
		if (json_object_get(m->mount[i].status, key))
			return true;
	return false;
}

static void print_family(FILE *to, const struct metrics *m, const char *key,
	const char *metric, bool counter, const char *help)
{
	char family[NAME_ROOM];
	double factor = family_name(family, "", metric);

	if (!any_has(m, key))
		return;
	print_head(to, m, family, counter ? "counter" : "gauge", help);
	for (size_t i = 0; i < m->nmounts; i++) {
		const struct metrics_mount *one = &m->mount[i];

		if (!json_object_get(one->status, key))
			continue;
		(void)fprintf(to, "%s%s{", family, counter ? "_total" : "");
		print_label(to, "mountpoint", one->mountpoint);
		(void)fputc('}', to);
		print_value(to, value_of(one->status, key) * factor);
	}
}

static void print_gauge_family(
	FILE *to, const struct metrics *m, const struct gauge *g)
{
	const char *counter = counter_of("", g->name);

	print_family(to, m, g->name, counter ? counter : g->name,
		counter != NULL, g->help);
}

/* -- Families of parts: tiers and peers ------------------------------------ */

struct metric_parts {
	const char *array, *prefix, *label;
	const struct gauge *table;
};

static void print_part_samples(FILE *to, const struct metrics_mount *one,
	const struct metric_parts *p, const struct gauge *g, const char *family,
	double factor)
{
	const char *total = counter_of(p->prefix, g->name) ? "_total" : "";
	const json_t *parts = json_object_get(one->status, p->array);

	for (size_t i = 0; i < json_array_size(parts); i++) {
		const json_t *part = json_array_get(parts, i);

		(void)fprintf(to, "%s%s{", family, total);
		print_label(to, "mountpoint", one->mountpoint);
		(void)fputc(',', to);
		print_label(to, p->label, ask_text(part, p->label));
		(void)fputc('}', to);
		print_value(to, value_of(part, g->name) * factor);
	}
}

static void print_parts(
	FILE *to, const struct metrics *m, const struct metric_parts *p)
{
	char family[NAME_ROOM];

	if (!any_has(m, p->array))
		return;
	for (const struct gauge *g = p->table; g->name; g++) {
		const char *counter = counter_of(p->prefix, g->name);
		double factor = family_name(
			family, p->prefix, counter ? counter : g->name);

		print_head(
			to, m, family, counter ? "counter" : "gauge", g->help);
		for (size_t i = 0; i < m->nmounts; i++)
			print_part_samples(
				to, &m->mount[i], p, g, family, factor);
	}
}

/* -- Histograms ------------------------------------------------------------ */

struct metric_histogram {
	const char *family, *mountpoint;
	const struct latency_info *info;
};

static void print_histogram_name(
	FILE *to, const struct metric_histogram *h, const char *suffix)
{
	(void)fprintf(to, "%s%s{", h->family, suffix);
	print_label(to, "mountpoint", h->mountpoint);
	if (h->info->label)
		(void)fprintf(to, ",%s=\"%s\"", h->info->label, h->info->value);
}

static void print_histogram(
	FILE *to, const struct metric_histogram *h, const json_t *status)
{
	const json_t *json = json_object_get(
		json_object_get(status, "latency"), h->info->name);
	uint64_t count[LATENCY_BUCKETS] = {0}, all = 0;

	if (!json)
		return;
	ask_latency(status, NULL, h->info->name, count);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		all += count[i];
		print_histogram_name(to, h, "_bucket");
		if (i < LATENCY_BUCKETS - 1)
			(void)fprintf(to, ",le=\"%.6g\"} %" PRIu64 "\n",
				(double)latency_bound_us(i) / 1e6, all);
		else
			(void)fprintf(to, ",le=\"+Inf\"} %" PRIu64 "\n", all);
	}
	print_histogram_name(to, h, "_sum");
	(void)fputc('}', to);
	print_value(to, (double)ask_number(json, "sum_us") / 1e6);
	print_histogram_name(to, h, "_count");
	(void)fprintf(to, "} %" PRIu64 "\n", all);
}

static void print_histograms(FILE *to, const struct metrics *m)
{
	const char *last = "";
	char family[NAME_ROOM];

	if (!any_has(m, "latency"))
		return;
	for (unsigned i = 0; i < LATENCY_KINDS; i++) {
		const char *name = latency_table[i].family;

		if (strcmp(name, last) == 0)
			continue;
		last = name;
		(void)snprintf(
			family, sizeof(family), "refrain_%s_seconds", name);
		print_head(to, m, family, "histogram", latency_table[i].help);
		for (size_t j = 0; j < m->nmounts; j++)
			for (unsigned k = i; k < LATENCY_KINDS &&
				strcmp(latency_table[k].family, name) == 0;
				k++)
				print_histogram(to,
					&(struct metric_histogram){family,
						m->mount[j].mountpoint,
						&latency_table[k]},
					m->mount[j].status);
	}
}

/* -- The host -------------------------------------------------------------- */

static void print_build(FILE *to, const struct metrics *m)
{
	struct utsname name;

	print_head(to, m, "refrain_build_info", "gauge",
		"Version of this program, and of the kernel.");
	(void)fprintf(
		to, "refrain_build_info{version=\"%s\",", PACKAGE_VERSION);
	print_label(to, "kernel", uname(&name) == 0 ? name.release : "");
	(void)fputs("} 1\n", to);
}

static void print_state(FILE *to, const char *family,
	const struct metrics_mount *one, bool value)
{
	(void)fprintf(to, "%s{", family);
	print_label(to, "mountpoint", one->mountpoint);
	(void)fprintf(to, "} %d\n", value);
}

static void print_ups(FILE *to, const struct metrics *m)
{
	size_t askable = 0;

	if (m->nmounts == 0)
		return;
	print_head(to, m, "refrain_refused", "gauge",
		"Whether this exporter may not ask the mount, such as another "
		"user's; it has no refrain_up then.");
	for (size_t i = 0; i < m->nmounts; i++) {
		print_state(to, "refrain_refused", &m->mount[i],
			m->mount[i].refused);
		askable += !m->mount[i].refused;
	}
	if (askable == 0)
		return;
	print_head(to, m, "refrain_up", "gauge",
		"Whether the mount answers; 0 if its daemon is dead or hangs.");
	for (size_t i = 0; i < m->nmounts; i++)
		if (!m->mount[i].refused)
			print_state(to, "refrain_up", &m->mount[i],
				m->mount[i].status != NULL);
}

static void print_infos(FILE *to, const struct metrics *m)
{
	if (!any_has(m, "source"))
		return;
	print_head(to, m, "refrain_mount_info", "gauge",
		"Source of the mount, and the version of its daemon.");
	for (size_t i = 0; i < m->nmounts; i++) {
		const struct metrics_mount *one = &m->mount[i];

		if (!one->status)
			continue;
		(void)fputs("refrain_mount_info{", to);
		print_label(to, "mountpoint", one->mountpoint);
		(void)fputc(',', to);
		print_label(to, "source", ask_text(one->status, "source"));
		(void)fputc(',', to);
		print_label(to, "version", ask_text(one->status, "version"));
		(void)fputs("} 1\n", to);
	}
}

static const struct gauge share_table[] = {
	{"jobs", "jobs", "Jobs that use the share."},
	{"slots", "batches", "Batches that the memory of the share holds."},
	{"slots_held", "batches", "Batches that jobs have not released."},
	{"step", "steps", "Batches that the host has made."},
	{"takeovers", "times", "Hosts that have taken over from another."},
	{"malformed", "messages", "Malformed messages."},
	{NULL, NULL, NULL},
};

static double share_value(const json_t *share, const char *key)
{
	const json_t *v = json_object_get(share, key);

	return json_is_array(v) ? (double)json_array_size(v)
				: value_of(share, key);
}

static void print_share_family(
	FILE *to, const struct metrics *m, const struct gauge *g)
{
	const char *counter = counter_of("share_", g->name);
	char family[NAME_ROOM];

	(void)snprintf(family, sizeof(family), "refrain_share_%s",
		counter ? counter : g->name);
	print_head(to, m, family, counter ? "counter" : "gauge", g->help);
	for (size_t i = 0; i < json_array_size(m->shares); i++) {
		const json_t *share = json_array_get(m->shares, i);

		if (!json_object_get(share, "step"))
			continue;
		(void)fprintf(to, "%s%s{", family, counter ? "_total" : "");
		print_label(to, "share", ask_text(share, "name"));
		(void)fputc('}', to);
		print_value(to, share_value(share, g->name));
	}
}

static void print_shares(FILE *to, const struct metrics *m)
{
	size_t n = json_array_size(m->shares), up = 0;

	if (n == 0)
		return;
	print_head(to, m, "refrain_share_up", "gauge",
		"Whether the host of the share answers.");
	for (size_t i = 0; i < n; i++) {
		const json_t *share = json_array_get(m->shares, i);
		bool answers = json_object_get(share, "step") != NULL;

		(void)fputs("refrain_share_up{", to);
		print_label(to, "share", ask_text(share, "name"));
		(void)fprintf(to, "} %d\n", answers);
		up += answers;
	}
	for (const struct gauge *g = share_table; up > 0 && g->name; g++)
		print_share_family(to, m, g);
}

void metrics_print(FILE *to, const struct metrics *m)
{
	static const struct metric_parts tiers = {
		"tiers", "tier_", "dir", tier_gauge_table};
	static const struct metric_parts peers = {
		"peers", "peer_", "host", peer_gauge_table};

	if (m->fleet) {
		print_build(to, m);
		print_ups(to, m);
	}
	print_infos(to, m);
	for (const struct counter_info *c = counter_table; c->name; c++)
		print_family(to, m, c->name, c->name, true, c->help);
	print_family(to, m, "recoveries", "recoveries", true,
		"Times that a daemon continued the mount of another.");
	for (const struct gauge *g = gauge_table; g->name; g++)
		print_gauge_family(to, m, g);
	print_parts(to, m, &tiers);
	print_parts(to, m, &peers);
	print_histograms(to, m);
	print_shares(to, m);
	if (m->openmetrics)
		(void)fputs("# EOF\n", to);
}
