/* SPDX-License-Identifier: MIT */
/* Finds the mount that contains a directory. From the directory it walks up,
 * within the file system, to the root of a refrain mount. This root has an
 * attribute with the path of the control socket. Like any access to the mount,
 * the walk may hang. Any thread; no state. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/base/path.h"
#include "loader/mount_help/help_impl.h"

/* Get a path under which this process can open the directory. It must name the
 * same directory in this process's mount namespace. */
static int socket_path_of(int dir_fd, char path[PATH_MAX], struct stat *st)
{
	struct stat named;
	int rc = path_of_fd(dir_fd, path);

	if (rc < 0)
		return rc == -ENAMETOOLONG ? -ENODATA : rc;
	if (path[0] != '/')
		return -ENODATA;
	if (fstat(dir_fd, st) < 0 || stat(path, &named) < 0)
		return -errno;
	return st->st_dev == named.st_dev && st->st_ino == named.st_ino
		? 0
		: -ENODATA;
}

/* Remove the last name of the path. Returns false if nothing is left, or if the
 * rest is on another file system. */
static bool go_up(char *path, dev_t dev)
{
	char *slash = strrchr(path, '/');
	struct stat st;

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return stat(path, &st) == 0 && st.st_dev == dev;
}

/* Read the attribute of a directory. Only the root of a refrain mount has
 * it. */
static ssize_t read_control(const char *path, char *socket, uid_t *owner)
{
	CLEANUP_FD int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char root[64];
	int rc = fd < 0 ? -errno : mountinfo_refrain_root(fd, owner, NULL, 0);

	if (rc < 0)
		return rc;
	(void)snprintf(root, sizeof(root), "/proc/self/fd/%d", fd);
	return getxattr(root, TALK_XATTR, socket, PATH_MAX - 1);
}

int help_find(
	int dir_fd, char socket[PATH_MAX], uid_t *owner, char below[PATH_MAX])
{
	char path[PATH_MAX], whole[PATH_MAX];
	struct stat st;
	int rc = socket_path_of(dir_fd, path, &st);

	if (rc < 0)
		return rc;
	memcpy(whole, path, sizeof(whole));
	do {
		ssize_t n = read_control(path, socket, owner);
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

int help_open_tier(const char *dir, uid_t owner)
{
	CLEANUP_FD int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != owner && st.st_uid != 0) || (st.st_mode & 0022))
		return -EPERM;
	return steal_fd(&fd);
}
