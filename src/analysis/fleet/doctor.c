/* SPDX-License-Identifier: MIT */
/* Finds faults; see doctor.h. Owns the findings, in the order of the checks. */
#include "analysis/fleet/doctor_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "common/base/path.h"

struct doctor *doctor_new(const struct option_usage *mount)
{
	struct doctor *d = calloc(1, sizeof(*d));

	if (d && fleet_new(&d->fleet) < 0) {
		free(d);
		return NULL;
	}
	if (d)
		d->mount = mount;
	return d;
}

void doctor_free(struct doctor *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nfindings; i++) {
		free(d->finding[i].what);
		free(d->finding[i].text);
		free(d->finding[i].advice);
	}
	for (size_t i = 0; d->words && i < fleet_count(d->fleet); i++) {
		free(d->words[i].words);
		free(d->words[i].log);
	}
	free(d->words);
	free(d->chosen);
	free(d->finding);
	array_release(&d->secrets);
	fleet_free(d->fleet);
	free(d);
}

/* Is this one of the mounts that the user has named? */
static bool named(const char *mountpoint, char *const *names, int n)
{
	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *path = path_of_mountpoint(names[i]);

		if (strcmp(path ? path : names[i], mountpoint) == 0)
			return true;
	}
	return n == 0;
}

static void choose_mounts(struct doctor *d, char *const *names, int n)
{
	size_t count = fleet_count(d->fleet);

	for (size_t i = 0; i < count; i++)
		d->chosen[i] =
			named(fleet_get(d->fleet, i).mountpoint, names, n);
	for (int k = 0; k < n; k++) {
		bool found = false;

		for (size_t i = 0; i < count && !found; i++)
			found = named(fleet_get(d->fleet, i).mountpoint,
				&names[k], 1);
		if (!found)
			doctor_find(d, DOCTOR_BAD, names[k],
				"mount it with 'refrain mount', or name "
				"another directory",
				"it is not a refrain mount");
	}
}

int doctor_examine(struct doctor *d, char *const *mountpoints, int n,
	const char *holder, struct error *err)
{
	int rc = fleet_look(d->fleet, FLEET_TIMEOUT_MS, err);
	size_t count = fleet_count(d->fleet);

	if (rc < 0)
		return rc;
	d->chosen = calloc(count + 1, sizeof(*d->chosen));
	d->words = calloc(count + 1, sizeof(*d->words));
	if (!d->chosen || !d->words)
		return error_set(err, -ENOMEM, "%m");
	doctor_words_find(d);
	doctor_secrets_find(d);
	doctor_machine(d, holder);
	choose_mounts(d, mountpoints, n);
	doctor_mounts(d);
	return 0;
}

int doctor_prepare(struct doctor *d, struct error *err)
{
	int rc = doctor_secrets_files(d, err);

	if (rc == 0)
		doctor_logs(d);
	return rc;
}

static void print_redacted(const struct doctor *d, const char *text, FILE *to)
{
	CLEANUP_FREE char *clean = doctor_redact(d, text);

	escape_print(to, clean ? clean : "(no memory)");
}

enum doctor_level doctor_print(const struct doctor *d, FILE *to)
{
	static const char *const name[] = {"ok", "warn", "bad"};
	enum doctor_level worst = DOCTOR_OK;

	for (size_t i = 0; i < d->nfindings; i++) {
		const struct doctor_finding *f = &d->finding[i];

		(void)fprintf(to, "%-5s ", name[f->level]);
		print_redacted(d, f->what, to);
		(void)fputs(": ", to);
		print_redacted(d, f->text, to);
		(void)fputc('\n', to);
		if (*f->advice) {
			(void)fputs("      -> ", to);
			print_redacted(d, f->advice, to);
			(void)fputc('\n', to);
		}
		if (f->level > worst)
			worst = f->level;
	}
	return worst;
}
