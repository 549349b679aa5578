/* SPDX-License-Identifier: MIT */
/*
 * Looks at the contents of a directory without an identity file. A program that
 * cleans up old files may have deleted that file from a tier. If any name does
 * not belong to a tier, the directory is not a tier. No state; called while
 * tiers are opened, verified and cleared.
 */
#include "mount/store/tier_identity_impl.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/owned.h"
#include "common/format/entry.h"

/* The first bytes of a manifest (doc/formats.md). */
static const char manifest_magic[] = "refrmani";

/* Convert two hexadecimal digits, the name of a sub-directory of a tier. */
static bool parse_sub(const char *name, unsigned int *sub)
{
	const char digits[] = {name[0], name[0] ? name[1] : '\0', '\0'};

	if (!isxdigit((unsigned char)digits[0]) ||
		!isxdigit((unsigned char)digits[1]) ||
		isupper((unsigned char)digits[0]) ||
		isupper((unsigned char)digits[1]))
		return false;
	*sub = (unsigned int)strtoul(digits, NULL, 16);
	return true;
}

static bool is_regular(int dir_fd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_REG;
	return fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode);
}

/* Is this file an entry of sub-directory wanted_sub? -1: of any, as in tmp/. */
static bool is_entry(int dir_fd, const struct dirent *e, int wanted_sub)
{
	struct hash128 key;
	uint64_t item_bytes;
	unsigned int sub;

	return parse_sub(e->d_name, &sub) &&
		(wanted_sub < 0 || sub == (unsigned int)wanted_sub) &&
		entry_parse_name(e->d_name, sub, &key, &item_bytes) &&
		is_regular(dir_fd, e);
}

/* Other programs use files of this name, too, so check the first bytes. */
static bool is_manifest(int dir_fd, const char *name)
{
	char magic[sizeof(manifest_magic) - 1];
	CLEANUP_FD int fd = openat(
		dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;

	if (fd < 0 || owned_file(dir_fd, fd) < 0)
		return false;
	n = read(fd, magic, sizeof(magic));
	return n == (ssize_t)sizeof(magic) &&
		memcmp(magic, manifest_magic, sizeof(magic)) == 0;
}

DIR *tier_open_subdir(int dir_fd, const char *name)
{
	CLEANUP_FD int fd = openat(
		dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)steal_fd(&fd);
	return dir;
}

/* Check a sub-directory, which may contain only entries. `sub` is the number of
 * the sub-directory, or -1 for tmp/. */
static int remains_in(
	int dir_fd, const char *name, int sub, char *foreign, size_t size)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(dir_fd, name);
	const struct dirent *e;

	if (!dir && errno != ENOTDIR && errno != ELOOP)
		return -errno;
	(void)snprintf(foreign, size, "%s", name);
	if (!dir)
		return REMAINS_FOREIGN;
	for (errno = 0; (e = readdir(dir)); errno = 0) {
		if (name_is_dots(e->d_name) || is_entry(dirfd(dir), e, sub))
			continue;
		(void)snprintf(foreign, size, "%s/%s", name, e->d_name);
		return REMAINS_FOREIGN;
	}
	return errno ? -errno : REMAINS_TIER;
}

static int remains_at(int dir_fd, const char *name, char *foreign, size_t size)
{
	unsigned int sub;

	/* A start that was killed leaves the first two. The root of a file
	 * system contains the third. */
	if (strcmp(name, LOCK_FILE_NAME) == 0 ||
		strcmp(name, IDENTITY_NEW_NAME) == 0 ||
		strcmp(name, "lost+found") == 0)
		return REMAINS_NONE;
	if (strcmp(name, TMP_DIR_NAME) == 0)
		return remains_in(dir_fd, name, -1, foreign, size);
	if (strlen(name) == 2 && parse_sub(name, &sub))
		return remains_in(dir_fd, name, (int)sub, foreign, size);
	if ((strcmp(name, "manifest") == 0 ||
		    strcmp(name, "manifest.new") == 0) &&
		is_manifest(dir_fd, name))
		return REMAINS_TIER;
	(void)snprintf(foreign, size, "%s", name);
	return REMAINS_FOREIGN;
}

int identity_remains(int dir_fd, char *name, size_t name_size)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(dir_fd, ".");
	int rc, found = REMAINS_NONE;
	const struct dirent *e;

	if (!dir)
		return -errno;
	for (errno = 0; (e = readdir(dir)); errno = 0) {
		if (name_is_dots(e->d_name))
			continue;
		rc = remains_at(dir_fd, e->d_name, name, name_size);
		if (rc <= REMAINS_FOREIGN)
			return rc;
		if (rc == REMAINS_TIER)
			found = rc;
	}
	return errno ? -errno : found;
}

int identity_check_remains(int dir_fd, const char *dir, struct error *err)
{
	char name[512] = "";
	int rc = identity_remains(dir_fd, name, sizeof(name));

	if (rc < 0)
		return error_set(err, rc, "cannot list '%s': %m", dir);
	if (rc == REMAINS_FOREIGN)
		return error_set(err, -EINVAL,
			"directory '%s' is not a cache (it contains '%s'); "
			"give one that was used with --cache",
			dir, name);
	if (rc == REMAINS_NONE)
		return error_set(err, -EINVAL,
			"directory '%s' is not a cache; give one that was "
			"used with --cache",
			dir);
	return 0;
}
