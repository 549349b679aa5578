/* SPDX-License-Identifier: MIT */
/* Writing a file to its end. No state; any thread. */
#ifndef BASE_WRITE_H
#define BASE_WRITE_H

#include <stddef.h>

/* All of it, from where the file stands: 0 or -errno, -EIO if it takes none. */
int write_all(int fd, const void *data, size_t bytes);

#endif
