/* SPDX-License-Identifier: MIT */
/* Replaces the program of the daemon of a mount, or options of it. */
#ifndef TOOLS_UPGRADE_H
#define TOOLS_UPGRADE_H

#include <jansson.h>

/* `program` is what to run; NULL: this program. `options` is [[NAME, VALUE],
 * ...]; those that cannot change must have their present values. Returns the
 * exit status. */
int upgrade_run(const char *mountpoint, const char *program, json_t *options);

#endif
