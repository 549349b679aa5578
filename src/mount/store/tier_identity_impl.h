/* SPDX-License-Identifier: MIT */
/*
 * The identity file and the lock, which make a directory a tier
 * (doc/formats.md). Functions take the open directory; they use its name only
 * in messages.
 */
#ifndef STORE_TIER_IDENTITY_IMPL_H
#define STORE_TIER_IDENTITY_IMPL_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/base/err.h"

#define IDENTITY_NAME "refrain-tier"
#define IDENTITY_NEW_NAME "refrain-tier.new"
#define LOCK_FILE_NAME "refrain-lock"
#define TMP_DIR_NAME "tmp"

/* Read the identity file of a tier. Returns 0 with the source in *encoded,
 * which the caller frees; 1 if there is no identity file; -EBADMSG if it is
 * damaged or has another version; or another -errno. */
int identity_read(
	int dir_fd, const char *dir, char **encoded, struct error *err);

/* Make the directory a tier of this source. Returns 0 or -errno. */
int identity_write(
	int dir_fd, const char *dir, const char *encoded, struct error *err);

/* Returns the source in the printable form of identity files; NULL: no
 * memory. */
char *identity_encode(const char *source);

/* Is this name "." or ".."? */
static inline bool name_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Open a sub-directory to list it. Returns NULL with errno set, also if the
 * name is a symbolic link. */
DIR *tier_open_subdir(int dir_fd, const char *name);

/* Does the directory have an identity file, even a damaged one? */
bool identity_exists(int dir_fd);

/* Result of identity_remains(). */
enum identity_remains {
	REMAINS_FOREIGN, /* a file that does not belong to a tier */
	REMAINS_NONE,	 /* nothing, or leftovers of a start that was killed */
	REMAINS_TIER,	 /* files of a tier, and no other files */
};

/* Look at the contents of a directory without an identity file and of its
 * sub-directories. Returns an enum identity_remains or -errno. `name` gets the
 * first name that does not belong to a tier. */
int identity_remains(int dir_fd, char *name, size_t name_size);

/* Check that a directory without an identity file contains only files of a
 * tier, and at least one. Returns 0, -EINVAL, or another -errno. */
int identity_check_remains(int dir_fd, const char *dir, struct error *err);

/*
 * Lock the directory for this process: both the directory itself, because a
 * locked file could be deleted, and the lock file. Returns the descriptor of
 * the lock file, -EBUSY if another process has the lock, or another -errno.
 * *made says whether this call created the lock file.
 */
int identity_lock(int dir_fd, const char *dir, bool *made, struct error *err);

#endif
