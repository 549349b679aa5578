/* SPDX-License-Identifier: MIT */
/* Asking the daemon of a mount one thing; for the subcommands that do. */
#ifndef TOOLS_ASK_H
#define TOOLS_ASK_H

#include <stdint.h>

#include "ctl/ctl.h"

/*
 * Connect, request (takes ownership), disconnect. *reply gets the last line;
 * the caller owns it. `progress` may be NULL.
 */
int ask(const char *mountpoint, json_t *request, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err);

/* The same for the "status" of the daemon, from a connection. */
int ask_status(struct ctl_client *client, json_t **status, struct error *err);

/*
 * {"cmd":cmd,"paths":[...]}: paths inside the mount, given relative to its
 * root or with the mountpoint before them. NULL for want of memory.
 */
json_t *ask_about_paths(
	const char *cmd, const char *mountpoint, char **paths, int npaths);

/* A number of an object, 0 if it is not there. */
uint64_t ask_number(const json_t *object, const char *key);

/* A string of an object, "" if it is not there. */
const char *ask_text(const json_t *object, const char *key);

#endif
