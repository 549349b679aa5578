/* SPDX-License-Identifier: MIT */
/* Opens names beneath a directory: with openat2() if the kernel has it,
 * otherwise one part at a time. No state; callable from any thread. */
#include "common/base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/feature.h"

static bool is_dots(const char *part, size_t len)
{
	return (len == 1 && part[0] == '.') ||
		(len == 2 && part[0] == '.' && part[1] == '.');
}

int beneath_check(const char *path)
{
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 0 || is_dots(path, len))
			return -EINVAL;
		path += len;
		if (*path == '/' && *++path == '\0')
			return -EINVAL;
	}
	return 0;
}

static int open_by_parts(int dir_fd, const char *path, int flags)
{
	CLEANUP_FD int owned = -1;
	int at = dir_fd;

	for (;;) {
		char part[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		int fd;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		path += len;
		if (*path == '\0') {
			fd = openat(at, part, flags);
			return fd < 0 ? -errno : fd;
		}
		path++;
		fd = openat(at, part,
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (owned >= 0)
			/* closing an O_PATH descriptor cannot fail */
			(void)close(owned);
		at = owned = fd;
	}
}

int beneath_open(int dir_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			RESOLVE_NO_MAGICLINKS,
	};
	int rc = beneath_check(path);
	long fd;

	if (rc)
		return rc;
	if (*path == '\0')
		path = ".";
	if (!feature_enabled("openat2"))
		return open_by_parts(dir_fd, path, (int)how.flags);
	fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open_by_parts(dir_fd, path, (int)how.flags);
	/* -EAGAIN: a directory of the path was renamed during the call, so try
	 * again. */
	if (fd < 0 && errno == EAGAIN)
		return open_by_parts(dir_fd, path, (int)how.flags);
	return fd < 0 ? -errno : (int)fd;
}
