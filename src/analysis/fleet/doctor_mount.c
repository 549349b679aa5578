/* SPDX-License-Identifier: MIT */
/*
 * Checks of mounts. What a daemon says comes from its status. The caches and
 * the source of one that does not answer come from its options.
 */
#include "analysis/fleet/doctor_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/mountinfo.h"

/* Read-ahead below this makes sequential reads slow. */
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
		(void)fclose(f); /* it was only read */
}

/* What the daemon itself complains about. */
static void check_status(
	struct doctor *d, const char *mountpoint, const json_t *status)
{
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(status, "limits"), i,
		value) doctor_find(d, DOCTOR_WARN, mountpoint, "", "%s",
		json_string_value(value) ? json_string_value(value) : "");
	json_array_foreach(
		json_object_get(status, "errors"), i, value) doctor_find(d,
		json_is_true(json_object_get(value, "present")) ? DOCTOR_BAD
								: DOCTOR_WARN,
		mountpoint,
		"look it up in refrain-mount(1), or in operations.md",
		"%s (%" PRIu64 " times)", ask_text(value, "message"),
		ask_number(value, "events"));
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

/* Make a path absolute: the daemon was started in another directory. */
static void place_name(struct doctor_place *p, const struct doctor_words *w,
	const char *text, size_t len)
{
	if (p->kind == PLACE_HOST || *text == '/' || !*w->cwd)
		(void)snprintf(
			p->text, sizeof(p->text), "%.*s", (int)len, text);
	else
		(void)snprintf(p->text, sizeof(p->text), "%.*s/%.*s",
			PATH_MAX / 2, w->cwd, (int)len, text);
}

struct doctor_places_list {
	struct doctor_place *at;
	size_t n, room;
};

static struct doctor_place *add_place(
	struct doctor_places_list *list, int kind, const char *mountpoint)
{
	if (ARRAY_ROOM_ZEROED(list->at, list->n, &list->room) < 0)
		return NULL;
	list->at[list->n].kind = kind;
	list->at[list->n].mountpoint = mountpoint;
	return &list->at[list->n++];
}

static void add_tiers(struct doctor_places_list *list,
	const struct fleet_mount *m, const struct doctor_words *w)
{
	const json_t *tier, *tiers = json_object_get(m->status, "tiers");
	struct doctor_place *p;
	const char *dir;
	size_t i;

	json_array_foreach(tiers, i, tier)
	{
		p = add_place(list, PLACE_TIER, m->mountpoint);
		dir = ask_text(tier, "dir");
		if (p)
			place_name(p, w, dir, strlen(dir));
	}
	if (tiers)
		return;
	for (unsigned k = 0; (dir = doctor_option(w, "cache", k)); k++) {
		const char *colon = strrchr(dir, ':');

		p = colon ? add_place(list, PLACE_TIER, m->mountpoint) : NULL;
		if (p)
			place_name(p, w, dir, (size_t)(colon - dir));
	}
}

static void add_source(struct doctor_places_list *list,
	const struct fleet_mount *m, const struct doctor_words *w)
{
	const char *source =
		m->status ? ask_text(m->status, "source") : doctor_source(w);
	const char *url = doctor_option(w, "endpoint-url", 0);
	bool web;
	struct doctor_place *p;

	if (!source || strncmp(source, "synthetic:", 10) == 0)
		return;
	web = strncmp(source, "http://", 7) == 0 ||
		strncmp(source, "https://", 8) == 0;
	if (strncmp(source, "s3://", 5) == 0)
		source = url ? url : "https://s3.amazonaws.com/";
	else if (!web && strstr(source, "://"))
		return;
	p = add_place(list,
		*source == '/' || !strstr(source, "://") ? PLACE_SOURCE
							 : PLACE_HOST,
		m->mountpoint);
	if (p)
		place_name(p, w, source, strlen(source));
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
		add_tiers(&places, &m, &d->words[i]);
		add_source(&places, &m, &d->words[i]);
	}
	if (n == 0)
		doctor_find(
			d, DOCTOR_OK, "mounts", "", "there is none to examine");
	doctor_places(d, places.at, places.n);
	free(places.at);
}
