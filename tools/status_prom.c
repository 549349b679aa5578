/* SPDX-License-Identifier: MIT */
/*
 * Prints a status in the Prometheus text format, from the tables of counters
 * and gauges. No state.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "analysis/fleet/request.h"
#include "mount/daemon/gauges.h"
#include "common/base/counters.h"
#include "common/base/escape.h"
#include "status_view.h"

/* Print name="value", escaped for a terminal and then for the format. */
static void print_label(const char *name, const char *raw)
{
	char shown[4 * PATH_MAX];
	const char *value = escape_text(shown, sizeof(shown), raw);

	(void)printf("%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			(void)printf("\\%c", *value);
		else
			(void)putchar(*value);
	}
	(void)putchar('"');
}

static void print_head(const char *prefix, const char *name, const char *suffix,
	const char *type, const char *help)
{
	(void)printf("# HELP %s%s%s %s\n# TYPE %s%s%s %s\n", prefix, name,
		suffix, help, prefix, name, suffix, type);
}

/* Print one sample. `of` is NULL unless the sample belongs to a tier or peer;
 * `part` is then its name. */
static void print_sample(const json_t *status, const char *metric,
	const char *suffix, const char *of, const char *part, uint64_t value)
{
	(void)printf("%s%s{", metric, suffix);
	print_label("mountpoint", ask_text(status, "mountpoint"));
	if (of) {
		(void)putchar(',');
		print_label(of, part);
	}
	(void)printf("} %" PRIu64 "\n", value);
}

static void print_counters(const json_t *status)
{
	char metric[128];

	for (const struct counter_info *c = counter_table; c->name; c++) {
		if (!json_object_get(status, c->name))
			continue;
		(void)snprintf(metric, sizeof(metric), "refrain_%s", c->name);
		print_head("refrain_", c->name, "_total", "counter", c->help);
		print_sample(status, metric, "_total", NULL, NULL,
			ask_number(status, c->name));
	}
}

/* The value of a number or a boolean. */
static uint64_t gauge(const json_t *status, const char *name)
{
	return json_is_true(json_object_get(status, name))
		? 1
		: ask_number(status, name);
}

static void print_gauges(const json_t *status)
{
	char metric[128];

	for (const struct gauge *g = gauge_table; g->name; g++) {
		if (!json_object_get(status, g->name))
			continue;
		(void)snprintf(metric, sizeof(metric), "refrain_%s", g->name);
		print_head("refrain_", g->name, "", "gauge", g->help);
		print_sample(
			status, metric, "", NULL, NULL, gauge(status, g->name));
	}
}

/* Gauges of each element of an array: metrics refrain_PREFIX_GAUGE. */
static void print_parts(const json_t *status, const char *array,
	const char *prefix, const char *of, const struct gauge *table)
{
	const json_t *parts = json_object_get(status, array), *part;
	char family[32], metric[128];

	(void)snprintf(family, sizeof(family), "refrain_%s_", prefix);
	for (const struct gauge *g = table; parts && g->name; g++) {
		(void)snprintf(metric, sizeof(metric), "%s%s", family, g->name);
		print_head(family, g->name, "", "gauge", g->help);
		for (size_t i = 0; i < json_array_size(parts); i++) {
			part = json_array_get(parts, i);
			print_sample(status, metric, "", of, ask_text(part, of),
				ask_number(part, g->name));
		}
	}
}

void status_print_prometheus(const json_t *status)
{
	print_counters(status);
	print_gauges(status);
	print_parts(status, "tiers", "tier", "dir", tier_gauge_table);
	print_parts(status, "peers", "peer", "host", peer_gauge_table);
}
