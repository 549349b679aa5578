/* SPDX-License-Identifier: MIT */
/* Finds paths in the form in which the kernel knows them. No state; any thread.
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Get the path by which an open file was found. Returns 0, -ENAMETOOLONG or
 * another -errno. */
int path_of_fd(int fd, char path[PATH_MAX]);

/* Returns the canonical path of a mountpoint whose mount may be dead. Then
 * realpath() of the last component would fail, so only its directory is
 * resolved. The caller frees the path. Returns NULL with errno set on failure.
 */
char *path_of_mountpoint(const char *path);

/* Is `path` the directory `top`, or below it? Both paths contain no links and
 * no "..". */
bool path_is_inside(const char *path, const char *top);

#endif
