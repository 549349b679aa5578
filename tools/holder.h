/* SPDX-License-Identifier: MIT */
/*
 * Starts the daemon of a mount under refrain-hold, which keeps the mount if the
 * daemon dies.
 */
#ifndef TOOLS_HOLDER_H
#define TOOLS_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/err.h"

/* The default time for which a mount may be without a daemon. */
#define HOLDER_RECOVER_S 30

/* The name of the program, and of its process. */
#define HOLDER_PROGRAM "refrain-hold"

/*
 * Run `refrain` with these words in the background, and wait until the mount is
 * ready. Returns the exit status of the daemon, which has printed why it
 * failed, or -errno with err set; -ENOENT: there is no refrain-hold.
 */
int holder_start(char **words, int n, unsigned recover_s, struct error *err);

/* Find a program that is installed for `refrain` alone. -ENOENT. */
int helper_path(const char *name, char *path, size_t size);

/* The holder that started this daemon; 0: there is none. */
pid_t holder_of(pid_t daemon);

#endif
