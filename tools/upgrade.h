/* SPDX-License-Identifier: MIT */
/* Replaces the program of the daemon of a mount, or options of it. */
#ifndef TOOLS_UPGRADE_H
#define TOOLS_UPGRADE_H

#include <jansson.h>

/* `program` may be NULL: this one. Options are [[NAME, VALUE], ...]; those that
 * cannot change must be as they are. Returns the exit status. */
int upgrade_run(const char *mountpoint, const char *program, json_t *options);

#endif
