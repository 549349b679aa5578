/* SPDX-License-Identifier: MIT */
/* The structs and functions that the checks of refrain doctor share. */
#ifndef FLEET_DOCTOR_IMPL_H
#define FLEET_DOCTOR_IMPL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "analysis/fleet/doctor.h"
#include "analysis/fleet/fleet.h"
#include "common/base/array.h"
#include "common/base/probe.h"

#define DOCTOR_TEXT_MAX 2048

/* A finding. The array has its texts. */
struct doctor_finding {
	enum doctor_level level;
	char *what; /* "device", or a mountpoint */
	char *text;
	char *advice; /* or "" */
};

/* A program that serves a mount, or would: its words, each with its NUL. */
struct doctor_words {
	char *words;
	size_t bytes;
	pid_t pid;
	uid_t user;
	gid_t group;
	char cwd[PATH_MAX]; /* "" if it is not known */
	char *log;	    /* the end of its log, once it is read, or NULL */
};

struct doctor {
	struct fleet *fleet;
	const struct option_usage *mount;
	struct doctor_finding *finding;
	size_t nfindings, room;
	struct array secrets;	    /* texts, each with its NUL */
	bool *chosen;		    /* of the mounts of the fleet */
	struct doctor_words *words; /* of the mounts of the fleet */
};

/* doctor_findings.c: add a finding. Texts are copied; for want of memory it is
 * left out. */
void doctor_find(struct doctor *d, enum doctor_level level, const char *what,
	const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* doctor_machine.c: what needs no mount. */
void doctor_machine(struct doctor *d, const char *holder);

/* doctor_mount.c: check the chosen mounts. */
void doctor_mounts(struct doctor *d);

/* doctor_words.c: find the words of the programs of all mounts. */
void doctor_words_find(struct doctor *d);
/* The value of an option: "--name VALUE" or "--name=VALUE"; NULL: not given.
 * `at` counts its repetitions. */
const char *doctor_option(
	const struct doctor_words *w, const char *name, unsigned at);
/* Make a name of its words absolute. False: it is relative, and the directory
 * is not known, because a daemon goes to "/" after it was started. */
bool doctor_path(
	const struct doctor_words *w, const char *name, char path[PATH_MAX]);
/* The source of a mount, or NULL. */
const char *doctor_source(const struct doctor *d, const struct doctor_words *w);

/* doctor_places.c: check places that may hang, all at once. */
struct doctor_place {
	enum {
		PLACE_TIER,
		PLACE_SOURCE, /* a directory */
		PLACE_HOST,   /* a URL */
	} kind;
	const char *mountpoint;
	char text[PATH_MAX]; /* a path or a URL */
};
void doctor_places(struct doctor *d, struct doctor_place *place, size_t n);

/* doctor_log.c: append what a child writes until it ends, and end it.
 * -ETIMEDOUT: it did not end in time. */
int doctor_take(struct probe *probe, struct array *to, uint64_t until_ns);

/* Read the ends of the logs of the chosen mounts. A log that
 * cannot be read has a text that says why. */
void doctor_logs(struct doctor *d);

/* doctor_secrets.c: collect the values of secrets, of environments and options;
 * and of files, which may hang. -errno: they are not known. */
void doctor_secrets_find(struct doctor *d);
int doctor_secrets_files(struct doctor *d, struct error *err);
/* Remove secrets, and what looks like one, from a text. The caller frees the
 * result; NULL: no memory. */
char *doctor_redact(const struct doctor *d, const char *text);

#endif
