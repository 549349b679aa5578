/* SPDX-License-Identifier: MIT */
/* Opens names that come from outside. The result is always beneath the
 * directory, whatever the name says and whatever symbolic links the directory
 * contains. */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

/* Check that a path can be beneath a directory: it must be relative, shorter
 * than PATH_MAX, and without empty parts, "." and "..". The path "" is the
 * directory itself. Returns 0, -EINVAL or -ENAMETOOLONG. */
int beneath_check(const char *path);

/* Open `path` beneath `dir_fd` without following a symbolic link in any part of
 * it. O_NOFOLLOW and O_CLOEXEC are implied; with O_PATH the last part may be a
 * link. Returns the descriptor, -ELOOP if another part is a link, or another
 * -errno. */
int beneath_open(int dir_fd, const char *path, int flags);

#endif
