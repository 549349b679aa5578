/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a file in one of our directories was created by us. No state;
 * any thread.
 */
#ifndef BASE_OWNED_H
#define BASE_OWNED_H

/*
 * Returns 0 if the open file is a regular file of the directory's owner, has
 * exactly one name, and is writable by nobody else. Otherwise -EPERM, -EISDIR
 * or -errno.
 */
int owned_file(int dir_fd, int fd);

#endif
