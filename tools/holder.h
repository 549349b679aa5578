/* SPDX-License-Identifier: MIT */
/* Starts the daemon of a mount under refrain-hold, which keeps the mount if the
 * daemon dies. */
#ifndef TOOLS_HOLDER_H
#define TOOLS_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/err.h"

/* The default time for which refrain-hold keeps a mount without a daemon. */
#define HOLDER_RECOVER_S 30

/* File name of the program, and name of its process. */
#define HOLDER_PROGRAM "refrain-hold"

/* Run `refrain` with these words in the background under refrain-hold, and wait
 * until the daemon serves the mount. Returns the exit status of the daemon,
 * which prints its own errors; or -errno with err set. -ENOENT: refrain-hold is
 * not installed. */
int holder_start(char **words, int n, unsigned recover_s, struct error *err);

/* Write the path of a helper program of `refrain`, which is outside PATH, into
 * `path`. Returns 0, or -ENOENT if it is not installed. */
int helper_path(const char *name, char *path, size_t size);

/* Returns the process of the holder that started this daemon; 0 if none did. */
pid_t holder_of(pid_t daemon);

#endif
