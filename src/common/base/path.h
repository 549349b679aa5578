/* SPDX-License-Identifier: MIT */
/* Paths as the kernel knows them. No state; any thread. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Get the path by which an open file was found. Returns 0, -ENAMETOOLONG or
 * another -errno. */
int path_of_fd(int fd, char path[PATH_MAX]);

/*
 * The canonical path of a mountpoint whose mount may be dead: realpath() of the
 * last component would fail, so only its directory is resolved. The caller
 * frees it. Returns NULL with errno set on failure.
 */
char *path_of_mountpoint(const char *path);

/* Is `path` the directory `top`, or below it? Both have no links and no "..".
 */
bool path_is_inside(const char *path, const char *top);

#endif
