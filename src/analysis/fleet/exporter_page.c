/* SPDX-License-Identifier: MIT */
/* The live page of the exporter, and its data; see exporter_page_impl.h. */
#include "analysis/fleet/exporter_page_impl.h"

#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/base/clock.h"
#include "common/base/escape.h"

/* The format of the data; a page that was loaded from another exporter asks to
 * be loaded again. */
#define PAGE_VERSION 1

static const char page[] = {
#include "analysis/fleet/exporter_page.inc"
};

const char *page_html(size_t *size)
{
	*size = sizeof(page);
	return page;
}

/* Times are of one clock, in milliseconds: rates need differences only. */
static json_t *page_ms(uint64_t ns)
{
	return json_integer((json_int_t)(ns / NS_PER_MS));
}

static json_t *page_mount(const struct fleet_mount *m)
{
	char path[4 * PATH_MAX], why[4 * sizeof(struct error)];
	json_t *o = json_pack("{s:s, s:s, s:s}", "mountpoint",
		escape_name(path, sizeof(path), m->mountpoint), "state",
		fleet_state_name(m->state), "why",
		escape_text(why, sizeof(why), m->why));

	if (m->state == FLEET_HUNG)
		(void)json_object_set_new(
			o, "silent_ms", page_ms(m->silent_ns));
	if (m->status) {
		(void)json_object_set_new(o, "at_ms", page_ms(m->status_ns));
		(void)json_object_set(
			o, "status", (json_t *)(uintptr_t)m->status);
	}
	return o;
}

char *page_data(const struct fleet *fleet, json_t *shares, size_t *size)
{
	json_t *mounts = json_array(), *all;
	struct utsname name;
	char *text;

	for (size_t i = 0; i < fleet_count(fleet); i++) {
		struct fleet_mount m = fleet_get(fleet, i);

		(void)json_array_append_new(mounts, page_mount(&m));
	}
	all = json_pack("{s:i, s:s, s:s, s:o, s:o, s:O?}", "page", PAGE_VERSION,
		"version", PACKAGE_VERSION, "host",
		uname(&name) == 0 ? name.nodename : "", "now_ms",
		page_ms(clock_now_ns()), "mounts", mounts, "shares", shares);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	*size = text ? strlen(text) : 0;
	return text;
}
