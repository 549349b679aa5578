/* SPDX-License-Identifier: MIT */
/*
 * How a thread that answers requests waits for the next one.
 *
 * Python's open() asks by an ioctl whether a file is a terminal. While readers
 * find everything else in the page cache, this is the only request of a file.
 * Its reader sleeps until it is answered, so a thread here is woken for it and
 * then the reader is, often on another processor; on a virtual machine that
 * took ten times as long as the answer. A thread that has answered nothing but
 * ioctls lately therefore looks for the next one a few times before it sleeps,
 * and yields its processor before each look. A busy processor runs its readers
 * meanwhile, and this thread when they sleep, without a wake-up. An idle one
 * looks in vain for some microseconds.
 */
#include "fs/fs_impl.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>

#include "base/feature.h"

#define LOOKS 16

/* Requests of any other kind come from readers that need data or names, and
 * their threads sleep as usual until so many ioctls have come in a row. */
#define IOCTLS 8u

void fs_poll_init(struct fs_poll *p)
{
	*p = (struct fs_poll){.off = !feature_enabled("busy_poll")};
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

bool fs_poll(const struct fs_poll *p, int fd)
{
	struct pollfd request = {.fd = fd, .events = POLLIN};

	if (p->ioctls < IOCTLS)
		return false;
	for (unsigned i = 0; i < LOOKS; i++) {
		(void)sched_yield();
		if (poll(&request, 1, 0) != 0)
			return true;
	}
	return false;
}
