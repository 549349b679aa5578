/* SPDX-License-Identifier: MIT */
/* The operations of a ring as ordinary system calls; for uring.c alone. */
#ifndef BASE_URING_PLAIN_H
#define BASE_URING_PLAIN_H

#include <fcntl.h>
#include <sys/stat.h>

#include "base/uring.h"

#define URING_STATX_MASK (STATX_TYPE | STATX_SIZE | STATX_MTIME)
#define URING_STATX_FLAGS (AT_EMPTY_PATH | AT_STATX_FORCE_SYNC)

/* Run the operation, which may block. Returns the result that a ring would give
 * it. */
int uring_run_plainly(struct uring_op *op);

#endif
