/* SPDX-License-Identifier: MIT */
/* Clears a tier directory: with the tier's lock held, deletes the files whose
 * names show that they belong to a tier, and no other files. Each call uses one
 * thread. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/store_impl.h"

struct clear {
	const char *dir;
	int dir_fd;
	uint64_t removed;
	struct error *err;
};

/* May this file of this directory be deleted? */
typedef bool clear_match_fn(const char *name, unsigned int sub);

static bool match_entry(const char *name, unsigned int sub)
{
	struct hash128 key;
	uint64_t item_bytes;

	return entry_parse_name(name, sub, &key, &item_bytes);
}

static bool match_all(const char *name, unsigned int sub)
{
	(void)sub;
	return !name_is_dots(name);
}

static bool match_manifest(const char *name, unsigned int sub)
{
	(void)sub;
	return strncmp(name, "manifest", strlen("manifest")) == 0;
}

/* Delete the matching files of one directory. Returns their number or
 * -errno. */
static int64_t clear_matching(struct clear *c, const char *name,
	clear_match_fn *match, unsigned int sub)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(c->dir_fd, name);
	const struct dirent *e;
	int64_t n = 0;

	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return error_set(c->err, -errno, "cannot open '%s/%s': %m",
			c->dir, name);
	for (errno = 0; (e = readdir(dir)); errno = 0) {
		if (!match(e->d_name, sub))
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) < 0)
			return error_set(c->err, -errno,
				"cannot delete '%s/%s/%s': %m", c->dir, name,
				e->d_name);
		n++;
	}
	return errno ? error_set(c->err, -errno, "cannot list '%s/%s': %m",
			       c->dir, name)
		     : n;
}

static int clear_entries(struct clear *c)
{
	char name[3];
	int64_t n;

	for (unsigned int sub = 0; sub < TIER_SUBDIRS; sub++) {
		(void)snprintf(name, sizeof(name), "%02x", sub & 0xff);
		n = clear_matching(c, name, match_entry, sub);
		if (n < 0)
			return (int)n;
		c->removed += (uint64_t)n;
		/* This fails if the directory contains other files, which must
		 * stay. */
		(void)unlinkat(c->dir_fd, name, AT_REMOVEDIR);
	}
	return 0;
}

/* Deletes the identity file last, so that a clear that was killed can be
 * repeated. */
static int clear_tier(struct clear *c)
{
	int64_t n;
	int rc = clear_entries(c);

	if (rc)
		return rc;
	n = clear_matching(c, TMP_DIR_NAME, match_all, 0);
	if (n < 0)
		return (int)n;
	/* This fails if the directory contains other files, which must stay */
	(void)unlinkat(c->dir_fd, TMP_DIR_NAME, AT_REMOVEDIR);
	n = clear_matching(c, ".", match_manifest, 0);
	if (n < 0)
		return (int)n;
	/* Usually this file does not exist */
	(void)unlinkat(c->dir_fd, IDENTITY_NEW_NAME, 0);
	/* Another program may have deleted the identity file. Perhaps the user
	 * clears the tier for this reason. */
	if ((unlinkat(c->dir_fd, IDENTITY_NAME, 0) < 0 && errno != ENOENT) ||
		unlinkat(c->dir_fd, LOCK_FILE_NAME, 0) < 0)
		return error_set(
			c->err, -errno, "cannot clear '%s': %m", c->dir);
	return 0;
}

int store_clear_dir(const char *dir, uint64_t *removed, struct error *err)
{
	CLEANUP_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_FD int lock_fd = -1;
	CLEANUP_FREE char *encoded = NULL;
	struct clear c = {.dir = dir, .dir_fd = fd, .err = err};
	bool made;
	int rc;

	*removed = 0;
	if (fd < 0)
		return error_set(err, -errno,
			"cannot open cache directory '%s': %m", dir);
	/* A tier that is damaged or of another version may be cleared, too. */
	rc = identity_read(fd, dir, &encoded, err);
	if (rc > 0)
		rc = identity_check_remains(fd, dir, err);
	if (rc < 0 && rc != -EBADMSG)
		return rc;
	lock_fd = identity_lock(fd, dir, &made, err);
	if (lock_fd < 0)
		return lock_fd;
	rc = clear_tier(&c);
	*removed = c.removed;
	return rc;
}

bool store_is_tier(int dir_fd)
{
	char name[512];

	return identity_exists(dir_fd) ||
		identity_remains(dir_fd, name, sizeof(name)) == REMAINS_TIER;
}
