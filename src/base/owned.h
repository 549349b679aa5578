/* SPDX-License-Identifier: MIT */
/*
 * Whether a file that lies in a directory of ours was put there by us. No
 * state; any thread.
 */
#ifndef BASE_OWNED_H
#define BASE_OWNED_H

/*
 * 0 if the open file is a regular file of the directory's owner, has one name,
 * and can be written by nobody else. -EPERM; -EISDIR; -errno.
 */
int owned_file(int dir_fd, int fd);

#endif
