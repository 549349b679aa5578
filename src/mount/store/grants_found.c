/* SPDX-License-Identifier: MIT */
/* Finds the tiers of a cache root that have no grant; see grants.h. No state.
 */
#include "mount/store/grants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/tier_impl.h"

#define NAME_DIGITS 12

static uint64_t block_bytes_of(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_frsize > 0 ? fs.f_frsize : 4096;
}

/* Add the files of a sub-directory to what the tier uses, each in whole
 * blocks, as entries are charged. */
static int add_subdir(
	int tier_fd, const char *name, uint64_t block_bytes, struct grant *used)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(tier_fd, name);
	const struct dirent *e;
	struct stat st;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (errno = 0, (e = readdir(dir))) {
		if (name_is_dots(e->d_name) ||
			fstatat(dirfd(dir), e->d_name, &st,
				AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		used->bytes += ((uint64_t)st.st_size + block_bytes - 1) /
			block_bytes * block_bytes;
		used->inodes++;
	}
	return -errno;
}

static int measure_tier(int tier_fd, struct grant *used)
{
	uint64_t block_bytes = block_bytes_of(tier_fd);
	char name[] = "00";
	int rc = add_subdir(tier_fd, TMP_DIR_NAME, block_bytes, used);

	used->inodes += TIER_INODES;
	for (unsigned i = 0; rc == 0 && i < TIER_SUBDIRS; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i & 0xff);
		rc = add_subdir(tier_fd, name, block_bytes, used);
	}
	return rc;
}

static int add_found(int root_fd, const char *name, struct grants *g)
{
	CLEANUP_FD int fd = openat(
		root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct grant *one;

	/* Anything else in the root is not a tier. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
			? 0
			: -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -EAGAIN;
	if (!identity_exists(fd))
		return 0;
	one = grants_add(g, name);
	return one ? measure_tier(fd, one) : -ENOSPC;
}

/* Is this the name of a tier that has no grant? A tier that is being dropped
 * has another name than its grant for a moment. */
static bool lacks_grant(struct grants *g, const char *name)
{
	const char *digits = grant_is_dropping(name)
		? name + strlen(GRANT_DROP_PREFIX)
		: name;

	return strlen(digits) == NAME_DIGITS &&
		strspn(digits, "0123456789abcdef") == NAME_DIGITS &&
		!grants_find(g, name) && !grants_find(g, digits);
}

int grants_find_lost(int root_fd, struct grants *g, const char *own)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(root_fd, ".");
	const struct dirent *e;
	int rc = 0;

	if (!dir)
		return -errno;
	while (rc == 0 && (errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, own) != 0 && lacks_grant(g, e->d_name))
			rc = add_found(root_fd, e->d_name, g);
	}
	return rc < 0 ? rc : -errno;
}
