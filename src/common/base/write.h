/* SPDX-License-Identifier: MIT */
/* Writes whole buffers to files. No state; any thread. */
#ifndef BASE_WRITE_H
#define BASE_WRITE_H

#include <stddef.h>

/* Write all bytes at the file's current position. Returns 0 or -errno; -EIO if
 * the file accepts no more bytes. */
int write_all(int fd, const void *data, size_t bytes);

#endif
