/* SPDX-License-Identifier: MIT */
/*
 * Opening names that come from outside: the result lies beneath the directory,
 * whatever the name says and whatever symbolic links lie there.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

/*
 * Whether a path is one that can be beneath: relative, no empty part, no "."
 * and "..", shorter than PATH_MAX; "" is the directory itself. 0, -EINVAL or
 * -ENAMETOOLONG.
 */
int beneath_check(const char *path);

/*
 * Open `path` beneath `dir_fd` without following a symbolic link anywhere
 * (O_NOFOLLOW and O_CLOEXEC are implied; with O_PATH the last part may be a
 * link). The descriptor, or -errno: -ELOOP for a link on the way.
 */
int beneath_open(int dir_fd, const char *path, int flags);

#endif
