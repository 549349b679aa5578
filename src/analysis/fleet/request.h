/* SPDX-License-Identifier: MIT */
/* Asks the daemon of a mount a single question, for subcommands. */
#ifndef FLEET_REQUEST_H
#define FLEET_REQUEST_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/fleet/client.h"

/* Connect, send the request, which this owns, and disconnect. *reply gets the
 * last line, which the caller owns. `progress` may be NULL. */
int ask(const char *mountpoint, json_t *request, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err);

/* Time limit for answers for which the daemon asks no origin. */
#define STATUS_TIMEOUT_S 5

/* Send the request "status" over an existing connection; otherwise like ask().
 */
int ask_status(struct ctl_client *client, json_t **status, struct error *err);

/* Create a request {"cmd":cmd,"paths":[...]}. The paths are inside the mount;
 * each is relative to its root or begins with the mountpoint. Returns NULL if
 * memory is short. */
json_t *ask_about_paths(
	const char *cmd, const char *mountpoint, char **paths, int npaths);

/* Returns a number in an object; 0 if it is missing. */
uint64_t ask_number(const json_t *object, const char *key);

/* Returns a string in an object; "" if it is missing. It may contain any
 * characters, so print it with escape_print() or ask_print(). */
const char *ask_text(const json_t *object, const char *key);

/* Add the buckets of a histogram of a status, such as "read_tier", to `count`,
 * which has LATENCY_BUCKETS elements. If `before` is not NULL, subtract the
 * buckets of this earlier status. A histogram that is missing adds nothing. */
void ask_latency(const json_t *now, const json_t *before, const char *name,
	uint64_t *count);

/* Write a duration such as "1.5 ms" to buf. Returns buf. */
#define TIME_TEXT_MAX 32
const char *ask_time_text(uint64_t us, char buf[TIME_TEXT_MAX]);

/* Print a string in an object, escaped for a terminal. */
void ask_print(FILE *to, const json_t *object, const char *key);

/* Print an object as a line of JSON in ASCII, so that it cannot control a
 * terminal. */
void ask_print_json(const json_t *object);

/* Returns `one` if n is 1, otherwise `more`: the endings of singular and
 * plural. Use "y" and "ies" for "entr", "" and "s" for "item". */
const char *ask_plural(uint64_t n, const char *one, const char *more);

#endif
