/* SPDX-License-Identifier: MIT */
/* Handles daemons that do not answer: reads an attribute of their mount with a
 * time limit, and says what the user can do. No state. */
#ifndef FLEET_SILENT_IMPL_H
#define FLEET_SILENT_IMPL_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/err.h"

/* Time limit. A daemon that runs answers within milliseconds. */
#define SILENT_TIMEOUT_MS 3000

/* Read an attribute of the directory that is open as `dir_fd` (O_PATH is
 * enough) into buf, with a NUL. Returns its length, -ETIMEDOUT after
 * SILENT_TIMEOUT_MS, or another -errno. */
int attribute_read(int dir_fd, const char *name, char *buf, size_t size);

/* Set the message for a daemon that does not answer. Returns `code`.
 * `mountpoint` may be NULL, and `pid` 0 if it is not known. */
int ctl_silent(const char *mountpoint, pid_t pid, int code, struct error *err);

#endif
