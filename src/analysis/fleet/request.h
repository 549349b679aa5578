/* SPDX-License-Identifier: MIT */
/* Asks the daemon of a mount a single question; for subcommands that do so. */
#ifndef FLEET_REQUEST_H
#define FLEET_REQUEST_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/fleet/client.h"

/*
 * Connect, send the request (takes ownership) and disconnect. *reply gets the
 * last line, which the caller owns. `progress` may be NULL.
 */
int ask(const char *mountpoint, json_t *request, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err);

/* The daemon answers questions that ask no origin within this time. */
#define STATUS_TIMEOUT_S 5

/* Ask for "status" over an existing connection; otherwise like ask(). */
int ask_status(struct ctl_client *client, json_t **status, struct error *err);

/*
 * A request {"cmd":cmd,"paths":[...]}. Its paths are inside the mount, given
 * relative to its root or with the mountpoint before them. Returns NULL if
 * memory is short.
 */
json_t *ask_about_paths(
	const char *cmd, const char *mountpoint, char **paths, int npaths);

/* A number in an object, 0 if it is missing. */
uint64_t ask_number(const json_t *object, const char *key);

/*
 * A string in an object, "" if it is missing. It may hold any characters; print
 * it with escape_print() or ask_print().
 */
const char *ask_text(const json_t *object, const char *key);

/*
 * Add the buckets of a histogram of a status, "read_tier", to `count`, which
 * has LATENCY_BUCKETS elements; less those of an earlier status, unless that is
 * NULL. Nothing is added for a histogram that is missing.
 */
void ask_latency(const json_t *now, const json_t *before, const char *name,
	uint64_t *count);

/* Write a duration to buf: "1.5 ms"; returns buf. */
#define TIME_TEXT_MAX 32
const char *ask_time_text(uint64_t us, char buf[TIME_TEXT_MAX]);

/* Print a string in an object, escaped for a terminal. */
void ask_print(FILE *to, const json_t *object, const char *key);

/* Print a line of JSON in ASCII, so that it cannot control a terminal. */
void ask_print_json(const json_t *object);

/* The ending of a plural: call it with "y" and "ies" for "entr", with "" and
 * "s" for "item". */
const char *ask_plural(uint64_t n, const char *one, const char *more);

#endif
