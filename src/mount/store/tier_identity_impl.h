/* SPDX-License-Identifier: MIT */
/*
 * The identity file and the lock that make a directory a tier (doc/formats.md).
 * Functions take the open directory; its name is for messages only.
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

/*
 * Read the identity of a tier. Returns 0, with the source in *encoded as it is
 * in the file (the caller frees it); 1 if there is no identity file; or
 * -EBADMSG if it is damaged or of another version.
 */
int identity_read(
	int dir_fd, const char *dir, char **encoded, struct error *err);

/* Make the directory a tier of this source. Returns 0 or -errno. */
int identity_write(
	int dir_fd, const char *dir, const char *encoded, struct error *err);

/* The source in the printable form of identity files. NULL: no memory. */
char *identity_encode(const char *source);

/* Is it one of the two names that every directory has? */
static inline bool name_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Open a sub-directory to list it. Returns NULL with errno set, also if the
 * name is a symbolic link. */
DIR *tier_open_subdir(int dir_fd, const char *name);

/* Does the directory have an identity file, damaged or not? */
bool identity_exists(int dir_fd);

/* What a directory without an identity file contains. */
enum identity_remains {
	REMAINS_FOREIGN, /* something that is not a tier's */
	REMAINS_NONE,	 /* nothing, or leftovers of a killed start */
	REMAINS_TIER,	 /* parts of a tier, and nothing else */
};

/*
 * Check what a directory without an identity file contains, including
 * sub-directories. Returns an identity_remains or -errno. `name` gets the first
 * name that is not a tier's.
 */
int identity_remains(int dir_fd, char *name, size_t name_size);

/* Check that a directory without an identity file is still a tier. Returns 0,
 * -EINVAL if it is not, or another -errno. */
int identity_check_remains(int dir_fd, const char *dir, struct error *err);

/*
 * Lock the directory for this process: `dir_fd` itself, whose lock nobody can
 * delete, and the lock file. Returns the descriptor of the file, or -EBUSY.
 * *made tells whether this call created the lock file.
 */
int identity_lock(int dir_fd, const char *dir, bool *made, struct error *err);

#endif
