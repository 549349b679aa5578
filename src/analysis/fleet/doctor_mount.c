/* SPDX-License-Identifier: MIT */
/*
 * Checks of mounts. A daemon that answers reports its caches and its source in
 * its status. For a daemon that does not answer, they are taken from its
 * options.
 */
#include "analysis/fleet/doctor_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"

/* A read-ahead that is smaller than this makes sequential reads slow. */
#define READ_AHEAD_FEW_KIB 128u
#define WAIT_LONG_MS 5000u

static void check_read_ahead(struct doctor *d, const char *mountpoint)
{
	struct mountinfo_device device;
	char path[64];
	unsigned kib;
	FILE *f;

	if (mountinfo_find(mountpoint, &device) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
		device.major, device.minor);
	f = fopen(path, "re");
	if (f && fscanf(f, "%u", &kib) == 1 && kib < READ_AHEAD_FEW_KIB)
		doctor_find(d, DOCTOR_WARN, mountpoint,
			"write 4096 to that file, as root; the mount does so "
			"itself if it may",
			"%s is %u: sequential reads are slow", path, kib);
	if (f)
		(void)fclose(f); /* the file was only read */
}

/* Report the faults that the daemon itself has noted in its status. */
static void check_status(
	struct doctor *d, const char *mountpoint, const json_t *status)
{
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(status, "limits"), i, value)
	{
		const char *text = json_string_value(value);

		doctor_find(
			d, DOCTOR_WARN, mountpoint, "", "%s", text ? text : "");
	}
	json_array_foreach(json_object_get(status, "errors"), i, value)
	{
		bool present = json_is_true(json_object_get(value, "present"));

		doctor_find(d, present ? DOCTOR_BAD : DOCTOR_WARN, mountpoint,
			"look it up in refrain-mount(1), or in operations.md",
			"%s (%" PRIu64 " times)", ask_text(value, "message"),
			ask_number(value, "events"));
	}
	if (ask_number(status, "checksum_errors") > 0)
		doctor_find(d, DOCTOR_BAD, mountpoint,
			"check the memory and the disk of the cache, and run "
			"'refrain verify'",
			"%" PRIu64 " cached blocks were damaged",
			ask_number(status, "checksum_errors"));
	if (ask_number(status, "parked_longest_ms") > WAIT_LONG_MS)
		doctor_find(d, DOCTOR_BAD, mountpoint,
			"look at 'refrain status --debug'; usually the source "
			"is slow or hangs",
			"a reader has waited for %" PRIu64 " s",
			ask_number(status, "parked_longest_ms") / 1000);
}

static void check_mount_state(struct doctor *d, const struct fleet_mount *m)
{
	static const char *const advice[] = {
		[FLEET_HUNG] = "see whether its process is stopped (state T) "
			       "or hangs in the kernel (state D)",
		[FLEET_DEAD] = "unmount it with 'refrain umount' and mount it "
			       "again",
		[FLEET_REFUSED] = "run this as root, or as the mount's user",
	};

	if (m->state == FLEET_UP)
		doctor_find(
			d, DOCTOR_OK, m->mountpoint, "", "its daemon answers");
	else
		doctor_find(d,
			m->state == FLEET_REFUSED ? DOCTOR_WARN : DOCTOR_BAD,
			m->mountpoint, advice[m->state], "%s%s%s",
			fleet_state_name(m->state), *m->why ? ": " : "",
			m->why);
}

struct doctor_places_list {
	struct doctor_place *at;
	size_t n, room;
};

/* Add a place. A path is made absolute, because the daemon was started in
 * another directory than this program. */
static void add_place(struct doctor *d, struct doctor_places_list *list,
	size_t i, int kind, const char *text)
{
	const char *mountpoint = fleet_get(d->fleet, i).mountpoint;
	struct doctor_place *p;

	if (ARRAY_ROOM_ZEROED(list->at, list->n, &list->room) < 0)
		return;
	p = &list->at[list->n];
	p->kind = kind;
	p->mountpoint = mountpoint;
	if (kind == PLACE_HOST)
		(void)snprintf(p->text, sizeof(p->text), "%s", text);
	else if (!doctor_path(&d->words[i], text, p->text)) {
		doctor_find(d, DOCTOR_WARN, mountpoint,
			"look at it yourself; to have it checked, mount with "
			"an absolute path",
			"%s '%s' cannot be checked: it is a relative path, and "
			"its directory is not known",
			kind == PLACE_TIER ? "cache" : "the source", text);
		return;
	}
	list->n++;
}

static void add_tiers(
	struct doctor *d, struct doctor_places_list *list, size_t i)
{
	const json_t *tier;
	const json_t *tiers =
		json_object_get(fleet_get(d->fleet, i).status, "tiers");
	const char *dir;
	size_t k;

	json_array_foreach(tiers, k, tier)
	{
		add_place(d, list, i, PLACE_TIER, ask_text(tier, "dir"));
	}
	if (tiers)
		return;
	for (unsigned n = 0; (dir = doctor_option(&d->words[i], "cache", n));
		n++) {
		const char *colon = strrchr(dir, ':');
		CLEANUP_FREE char *name =
			colon ? strndup(dir, (size_t)(colon - dir)) : NULL;

		if (name)
			add_place(d, list, i, PLACE_TIER, name);
	}
}

static void add_source(
	struct doctor *d, struct doctor_places_list *list, size_t i)
{
	const struct doctor_words *w = &d->words[i];
	const json_t *status = fleet_get(d->fleet, i).status;
	const char *source =
		status ? ask_text(status, "source") : doctor_source(d, w);
	const char *url = doctor_option(w, "endpoint-url", 0);
	bool web;

	if (!source || strncmp(source, "synthetic:", 10) == 0)
		return;
	web = strncmp(source, "http://", 7) == 0 ||
		strncmp(source, "https://", 8) == 0;
	if (strncmp(source, "s3://", 5) == 0)
		source = url ? url : "https://s3.amazonaws.com/";
	else if (!web && strstr(source, "://"))
		return;
	add_place(d, list, i,
		*source == '/' || !strstr(source, "://") ? PLACE_SOURCE
							 : PLACE_HOST,
		source);
}

void doctor_mounts(struct doctor *d)
{
	struct doctor_places_list places = {.n = 0};
	unsigned n = 0;

	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		struct fleet_mount m = fleet_get(d->fleet, i);

		if (!d->chosen[i])
			continue;
		n++;
		check_mount_state(d, &m);
		check_read_ahead(d, m.mountpoint);
		check_status(d, m.mountpoint, m.status);
		add_tiers(d, &places, i);
		add_source(d, &places, i);
	}
	if (n == 0)
		doctor_find(
			d, DOCTOR_OK, "mounts", "", "there is none to examine");
	doctor_places(d, places.at, places.n);
	free(places.at);
}
