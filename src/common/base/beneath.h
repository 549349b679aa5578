/* SPDX-License-Identifier: MIT */
/*
 * Opens names that come from outside. The result lies beneath the directory,
 * whatever the name says and whatever symbolic links lie there.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

/*
 * Check that a path can lie beneath a directory: relative, shorter than
 * PATH_MAX, and without empty parts, "." and "..". "" is the directory itself.
 * Returns 0, -EINVAL or -ENAMETOOLONG.
 */
int beneath_check(const char *path);

/*
 * Open `path` beneath `dir_fd` without following a symbolic link anywhere.
 * O_NOFOLLOW and O_CLOEXEC are implied; with O_PATH the last part may be a
 * link. Returns the descriptor, or -errno: -ELOOP for a link on the way.
 */
int beneath_open(int dir_fd, const char *path, int flags);

#endif
