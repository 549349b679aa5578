/* SPDX-License-Identifier: MIT */
/*
 * What makes a directory a tier: its identity file and its lock
 * (doc/formats.md). Functions take the open directory, and its name for
 * messages only.
 */
#ifndef STORE_IDENTITY_IMPL_H
#define STORE_IDENTITY_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define IDENTITY_NAME "refrain-tier"
#define IDENTITY_NEW_NAME "refrain-tier.new"
#define LOCK_FILE_NAME "refrain-lock"
#define TMP_DIR_NAME "tmp"

/*
 * Whose tier is it? 0 and the source as the file has it (encoded; the caller
 * frees it), 1 if there is no identity file, -EBADMSG if it is damaged or of
 * another version.
 */
int identity_read(
	int dir_fd, const char *dir, char **encoded, struct error *err);

/* Make the directory the tier of this source. -errno. */
int identity_write(
	int dir_fd, const char *dir, const char *encoded, struct error *err);

/* The source as identity files have it: printable. NULL for want of memory. */
char *identity_encode(const char *source);

/*
 * Nothing in the directory but what a killed start leaves: 1, else 0 (-errno).
 * `name` gets one that should not be there.
 */
int identity_dir_empty(int dir_fd, char *name, size_t name_size);

/*
 * Lock it for this process: the descriptor, or -EBUSY. *made tells whether the
 * lock file was not there before.
 */
int identity_lock(int dir_fd, const char *dir, bool *made, struct error *err);

#endif
