/* SPDX-License-Identifier: MIT */
/* Reads a file through io_uring, as a program of a user would. */
#ifndef RING_READ_H
#define RING_READ_H

#include <stddef.h>

/* Read `size` bytes of fd into buf, with several reads of `step` bytes at a
 * time. Returns 0 or -errno: -ENOSYS or -EPERM if io_uring is not available,
 * -EIO if a read was short. */
int ring_read(int fd, char *buf, size_t size, size_t step);

#endif
