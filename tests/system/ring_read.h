/* SPDX-License-Identifier: MIT */
/* Reads a file through io_uring, as a program of a user would. */
#ifndef RING_READ_H
#define RING_READ_H

#include <stddef.h>

/*
 * Read `size` bytes of fd into buf, in reads of `step` bytes, several at a
 * time. Returns 0 or -errno: -ENOSYS or -EPERM if there is no io_uring, -EIO
 * for a short read.
 */
int ring_read(int fd, char *buf, size_t size, size_t step);

#endif
