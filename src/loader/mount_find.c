/* SPDX-License-Identifier: MIT */
/*
 * Whose file system a directory lies on: up from it, as long as it is the same
 * one, until there is the attribute that the root of a mount has. May hang as
 * any call on the mount may. No state; any thread.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "loader/mount.h"

#define XATTR "user.refrain.control"

/* The name by which the process would find it. */
static int path_of(int dir_fd, char path[PATH_MAX], struct stat *st)
{
	struct stat named;
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	n = readlink(link, path, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == PATH_MAX || path[0] != '/')
		return -ENODATA;
	path[n] = '\0';
	if (fstat(dir_fd, st) < 0 || stat(path, &named) < 0)
		return -errno;
	return st->st_dev == named.st_dev && st->st_ino == named.st_ino
		? 0
		: -ENODATA;
}

/* Cut the last name off. False: nothing is left, or of another file system. */
static bool go_up(char *path, dev_t dev)
{
	char *slash = strrchr(path, '/');
	struct stat st;

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return stat(path, &st) == 0 && st.st_dev == dev;
}

int mount_find(int dir_fd, char socket[PATH_MAX], char below[PATH_MAX])
{
	char path[PATH_MAX], whole[PATH_MAX];
	struct stat st;
	int rc = path_of(dir_fd, path, &st);

	if (rc < 0)
		return rc;
	memcpy(whole, path, sizeof(whole));
	do {
		ssize_t n = getxattr(path, XATTR, socket, PATH_MAX - 1);
		size_t up = strlen(path);

		if (n <= 0)
			continue;
		socket[n] = '\0';
		if (!whole[up]) {
			below[0] = '\0';
			return 0;
		}
		n = snprintf(below, PATH_MAX, "%s/", whole + up + 1);
		return n < PATH_MAX ? 0 : -ENAMETOOLONG;
	} while (go_up(path, st.st_dev));
	return -ENODATA;
}
