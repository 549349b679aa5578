/* SPDX-License-Identifier: MIT */
/* Reading a file through a bare io_uring, as a program without us would. */
#ifndef RING_READ_H
#define RING_READ_H

#include <stddef.h>

/*
 * Read `size` bytes of fd into buf, `step` at a time, several at once. -errno;
 * -ENOSYS or -EPERM where there is no io_uring, -EIO for a short read.
 */
int ring_read(int fd, char *buf, size_t size, size_t step);

#endif
