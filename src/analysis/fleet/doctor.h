/* SPDX-License-Identifier: MIT */
/*
 * Looks for faults of this host and of its mounts, and says what to do about
 * each. No check touches a mountpoint. All checks that may hang run at the same
 * time, in child processes, so an examination ends within 10 s even if daemons,
 * disks or servers hang. One thread; the process must have no other.
 */
#ifndef FLEET_DOCTOR_H
#define FLEET_DOCTOR_H

#include <stdio.h>

#include "common/base/err.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_WARN, /* this works, but not well, or not for everybody */
	DOCTOR_BAD,
};

struct doctor;

struct option_usage;

/* Create a doctor. `mount` describes the options of refrain mount, and must
 * outlive the doctor. Returns NULL if memory is short. */
struct doctor *doctor_new(const struct option_usage *mount);
void doctor_free(struct doctor *d); /* NULL is allowed */

/* Examine the host and these mounts; all mounts if there are none. `holder` is
 * the path of refrain-hold, or NULL if it is missing. Returns -errno if the
 * kernel's list of mounts cannot be read. */
int doctor_examine(struct doctor *d, char *const *mountpoints, int n,
	const char *holder, struct error *err);

/* Read the files that an archive needs, which are logs and files of secrets.
 * Must be called before doctor_print(). The secrets of these files are then
 * removed from all output. Returns -ETIMEDOUT if reading a file of secrets
 * hangs; then the caller must not write an archive. */
int doctor_prepare(struct doctor *d, struct error *err);

/* Print each finding on a line, and on another line what to do. Secrets are
 * removed. Returns the worst level. */
enum doctor_level doctor_print(const struct doctor *d, FILE *to);

/* Write a tar archive, after doctor_prepare(), with the findings, the status of
 * the mounts, their options, the ends of their logs, and facts about the host.
 * Secrets are removed. Lists the files on `to`. */
int doctor_archive(
	struct doctor *d, const char *file, FILE *to, struct error *err);

#endif
