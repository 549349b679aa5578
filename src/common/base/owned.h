/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a file in one of our directories was created by us. No state;
 * any thread.
 */
#ifndef BASE_OWNED_H
#define BASE_OWNED_H

/* Check an open file. Returns 0 if it is a regular file of the directory's
 * owner, has exactly one name, and only its owner can write it. Otherwise
 * returns -EPERM, -EISDIR or another -errno. */
int owned_file(int dir_fd, int fd);

#endif
