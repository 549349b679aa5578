/* SPDX-License-Identifier: MIT */
/* Finds paths in the form in which the kernel knows them; see path.h. */
#include "common/base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

int path_of_fd(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	path[n] = '\0';
	return 0;
}

char *path_of_mountpoint(const char *path)
{
	CLEANUP_FREE char *copy = strdup(path);
	CLEANUP_FREE char *dir = NULL;
	char *slash, *full = NULL;
	size_t n;

	if (!copy)
		return NULL;
	n = strlen(copy);
	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = '\0';
	slash = strrchr(copy, '/');
	if (slash && slash[1] == '\0')
		return strdup("/");
	if (strcmp(slash ? slash + 1 : copy, "..") == 0 ||
		strcmp(slash ? slash + 1 : copy, ".") == 0)
		return realpath(copy, NULL);
	if (slash)
		*slash = '\0';
	dir = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (!dir ||
		asprintf(&full, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir,
			slash ? slash + 1 : copy) < 0)
		return NULL;
	return full;
}

bool path_is_inside(const char *path, const char *top)
{
	size_t n = strlen(top);

	if (strcmp(top, "/") == 0)
		return true;
	return strncmp(path, top, n) == 0 &&
		(path[n] == '/' || path[n] == '\0');
}
