/* SPDX-License-Identifier: MIT */
/*
 * How a thread that answers requests waits for the next one.
 *
 * Python's open() asks by an ioctl whether a file is a terminal. While readers
 * find everything else in the page cache, this is the only request of a file.
 * Its reader sleeps until it is answered, so a thread here is woken for it and
 * then the reader is, often on another processor; on a virtual machine that
 * takes longer than the answer (doc/benchmarks.md). A thread that has answered
 * nothing but ioctls lately therefore looks for the next one a few times before
 * it sleeps, and yields its processor before each look. A busy processor runs
 * its readers meanwhile, and this thread when they sleep, without a wake-up. An
 * idle one looks in vain for some microseconds.
 */
#include "mount/fs/fs_impl.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>

#include "common/base/feature.h"

#define LOOKS 16

/* One thread never looks, so that a request wakes it as usual, unless it is
 * answering another. When all looked and programs that only compute had the
 * processors, a request waited for the end of their time slices. */
#define LOOKING_MAX (FS_WORKERS - 1)

/* Requests of any other kind come from readers that need data or names, and
 * their threads sleep as usual until so many ioctls have come in a row. */
#define IOCTLS 8u

void fs_poll_init(struct fs_poll *p, atomic_uint *looking)
{
	*p = (struct fs_poll){
		.looking = looking, .off = !feature_enabled("busy_poll")};
}

void fs_poll_asked(struct fs_poll *p, const struct fuse_buf *request)
{
	const struct fuse_in_header *in = request->mem;

	if (p->off)
		return;
	if (!(request->flags & FUSE_BUF_IS_FD) &&
		request->size >= sizeof(*in) && in->opcode == FUSE_IOCTL)
		p->ioctls += p->ioctls < IOCTLS;
	else
		p->ioctls = 0;
}

static bool look_again(int fd)
{
	struct pollfd request = {.fd = fd, .events = POLLIN};

	for (unsigned i = 0; i < LOOKS; i++) {
		(void)sched_yield();
		if (poll(&request, 1, 0) != 0)
			return true;
	}
	return false;
}

bool fs_poll(const struct fs_poll *p, int fd)
{
	bool found = false;

	if (p->ioctls < IOCTLS)
		return false;
	if (atomic_fetch_add(p->looking, 1) < LOOKING_MAX)
		found = look_again(fd);
	(void)atomic_fetch_sub(p->looking, 1);
	return found;
}
