/* SPDX-License-Identifier: MIT */
/*
 * Looks for faults of this host and of its mounts, and says what to do about
 * each. No check touches a mount point, and all that may hang runs in children,
 * at once, so an examination ends within 10 s whatever is dead or hangs. One
 * thread; the process must have no other.
 */
#ifndef FLEET_DOCTOR_H
#define FLEET_DOCTOR_H

#include <stdio.h>

#include "common/base/err.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_WARN, /* it works, but not well, or not for everybody */
	DOCTOR_BAD,
};

struct doctor;

struct option_usage;

/* `mount` describes the options of refrain mount, which must outlive the
 * doctor. Returns NULL if memory is short. */
struct doctor *doctor_new(const struct option_usage *mount);
void doctor_free(struct doctor *d); /* NULL is allowed */

/* Examine the host and these mounts; all mounts if there are none. `holder` is
 * the path of refrain-hold, or NULL if it is missing. Returns -errno if the
 * kernel's list of mounts cannot be read. */
int doctor_examine(struct doctor *d, char *const *mountpoints, int n,
	const char *holder, struct error *err);

/* Read the files that an archive needs, before doctor_print(): logs, and files
 * of secrets, so that these are removed. -ETIMEDOUT: a file of secrets hangs,
 * so there must be no archive. */
int doctor_prepare(struct doctor *d, struct error *err);

/* Print a line for each finding, and another with what to do. Secrets are
 * removed. Returns the worst level. */
enum doctor_level doctor_print(const struct doctor *d, FILE *to);

/* After doctor_prepare(): write a tar archive with the findings, the status of
 * the mounts, their options, the ends of their logs, and facts about the host.
 * Secrets are removed. Lists the files on `to`. */
int doctor_archive(
	struct doctor *d, const char *file, FILE *to, struct error *err);

#endif
