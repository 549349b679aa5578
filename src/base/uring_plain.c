/* SPDX-License-Identifier: MIT */
/* Operations without a ring; see uring_plain.h. */
#include "base/uring_plain.h"

#include <errno.h>
#include <unistd.h>

#include "base/beneath.h"

static int open_plainly(const struct uring_op *op)
{
	int fd;

	if (op->flags & O_NOFOLLOW)
		return beneath_open(op->fd, op->path, op->flags);
	fd = openat(op->fd, op->path, op->flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int uring_run_plainly(struct uring_op *op)
{
	ssize_t n;

	switch (op->kind) {
	case URING_OPEN:
		return open_plainly(op);
	case URING_READ:
		n = pread(op->fd, op->buf, op->len, (off_t)op->off);
		return n < 0 ? -errno : (int)n;
	case URING_STATX:
		return statx(op->fd, "", URING_STATX_FLAGS, URING_STATX_MASK,
			       op->buf)
			? -errno
			: 0;
	case URING_CLOSE:
		return close(op->fd) ? -errno : 0;
	}
	return -EINVAL;
}
