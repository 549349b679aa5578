/* SPDX-License-Identifier: MIT */
/* Replaces the program of a mount's daemon, or its options. */
#ifndef TOOLS_UPGRADE_H
#define TOOLS_UPGRADE_H

#include <jansson.h>

/* `program` is the program to run; NULL: the program of this process. `options`
 * is [[NAME, VALUE], ...]; an option that cannot change must have its present
 * value. Returns the exit status. */
int upgrade_run(const char *mountpoint, const char *program, json_t *options);

#endif
