/* SPDX-License-Identifier: MIT */
/* Paths as the kernel knows them. No state; any thread. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The path by which an open file was found. -ENAMETOOLONG, -errno. */
int path_of_fd(int fd, char path[PATH_MAX]);

/*
 * The path of a mountpoint whose mount may be dead: realpath() of the last
 * component would fail, so only its directory is resolved. To be freed; NULL:
 * errno says why.
 */
char *path_of_mountpoint(const char *path);

/* Is it that directory, or below it? Both without links and "..". */
bool path_is_inside(const char *path, const char *top);

#endif
