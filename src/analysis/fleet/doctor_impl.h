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

/* A finding. The array owns its texts. */
struct doctor_finding {
	enum doctor_level level;
	/* subject: "device" or another part of the host, or a mountpoint */
	char *what;
	char *text;
	char *advice; /* what to do, or "" */
};

/* The words of a program that serves a mount or holds it, each with its NUL. */
struct doctor_words {
	char *words;
	size_t bytes;
	pid_t pid;
	uid_t user;
	gid_t group;
	/* working directory of the program; "" if unknown */
	char cwd[PATH_MAX];
	/* end of the program's log, after the log was read; otherwise NULL */
	char *log;
};

struct doctor {
	struct fleet *fleet;
	const struct option_usage *mount;
	struct doctor_finding *finding;
	size_t nfindings, room;
	struct array secrets;	    /* texts, each with its NUL */
	bool *chosen;		    /* one for each mount of the fleet */
	struct doctor_words *words; /* one for each mount of the fleet */
};

/* doctor_findings.c: add a finding. Texts are copied. If memory is short, the
 * finding is left out. */
void doctor_find(struct doctor *d, enum doctor_level level, const char *what,
	const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* doctor_machine.c: check everything that needs no mount. */
void doctor_machine(struct doctor *d, const char *holder);

/* doctor_mount.c: check the chosen mounts. */
void doctor_mounts(struct doctor *d);

/* doctor_words.c: find the words of the programs of all mounts. */
void doctor_words_find(struct doctor *d);
/* Returns the value of an option, from "--name VALUE" or "--name=VALUE"; NULL
 * if the option was not given. If it was given several times, `at` chooses one
 * of its values. */
const char *doctor_option(
	const struct doctor_words *w, const char *name, unsigned at);
/* Make a name from a program's words absolute. Returns false if the name is
 * relative and the directory is unknown: a daemon leaves the directory in which
 * it was started. */
bool doctor_path(
	const struct doctor_words *w, const char *name, char path[PATH_MAX]);
/* Returns the source of a mount, or NULL. */
const char *doctor_source(const struct doctor *d, const struct doctor_words *w);

/* doctor_places.c: check places that may hang, all at once. */
struct doctor_place {
	enum {
		PLACE_TIER,
		PLACE_SOURCE, /* the text is a directory */
		PLACE_HOST,   /* the text is a URL */
	} kind;
	const char *mountpoint;
	char text[PATH_MAX]; /* a path or a URL */
};
void doctor_places(struct doctor *d, struct doctor_place *place, size_t n);

/* doctor_log.c: append everything that a child writes until it ends, and end
 * the child. Returns -ETIMEDOUT if it did not end in time. */
int doctor_take(struct probe *probe, struct array *to, uint64_t until_ns);

/* Read the ends of the logs of the chosen mounts. A log that
 * cannot be read has a text that says why. */
void doctor_logs(struct doctor *d);

/* doctor_secrets.c: collect secret values. doctor_secrets_find() takes them
 * from environments and options, doctor_secrets_files() from files, which may
 * hang. The latter returns -errno if the secrets of the files are not known. */
void doctor_secrets_find(struct doctor *d);
int doctor_secrets_files(struct doctor *d, struct error *err);
/* Remove secrets from a text, and everything that looks like a secret. The
 * caller frees the result, which is NULL if memory is short. */
char *doctor_redact(const struct doctor *d, const char *text);

#endif
