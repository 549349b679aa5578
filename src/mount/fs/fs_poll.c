/* SPDX-License-Identifier: MIT */
/*
 * Decides how a thread that answers requests waits for the next one.
 *
 * Python's open() sends an ioctl that asks whether a file is a terminal. If
 * readers find everything else in the page cache, this ioctl is the only
 * request for a file. The reader sleeps until it is answered: first a thread of
 * the daemon must be woken, then the reader, often on another processor. On a
 * virtual machine these wake-ups take longer than the answer
 * (doc/benchmarks.md).
 *
 * Therefore a thread that has recently answered only ioctls polls for the next
 * request a few times before it sleeps, and yields its processor before each
 * poll. On a busy processor, readers run after the yield; when they sleep, this
 * thread continues without a wake-up. On an idle processor a few microseconds
 * are wasted.
 */
#include "mount/fs/fs_impl.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>

#include "common/base/feature.h"

#define LOOKS 16

/* At least one thread does not poll, so that a request wakes it as usual. If
 * all threads polled while the processors were busy with computations, a
 * request would have to wait for the end of a time slice. */
#define LOOKING_MAX (FS_WORKERS - 1)

/* A thread polls only after this many ioctls in a row. After another request it
 * sleeps at once, because such requests come from readers that need data or
 * names. */
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
