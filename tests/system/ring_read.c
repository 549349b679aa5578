/* SPDX-License-Identifier: MIT */
/* Reads by the system calls of io_uring; does not use src/common/base/uring.h,
 * because it represents a program of a user. A ring exists only during the
 * call. */
#include "ring_read.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 8u

struct ring {
	int fd;
	char *rings; /* both rings; one mapping has both since Linux 5.4 */
	size_t rings_bytes;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static int ring_init(struct ring *r)
{
	size_t cq_bytes, sq_bytes;

	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(SYS_io_uring_setup, DEPTH, &r->p);
	if (r->fd < 0)
		return -errno;
	sq_bytes = r->p.sq_off.array + r->p.sq_entries * sizeof(uint32_t);
	cq_bytes = r->p.cq_off.cqes +
		r->p.cq_entries * sizeof(struct io_uring_cqe);
	r->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
	r->rings = mmap(NULL, r->rings_bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, DEPTH * sizeof(*r->sqes), PROT_READ | PROT_WRITE,
		MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (r->rings != MAP_FAILED && r->sqes != MAP_FAILED)
		return 0;
	(void)close(r->fd); /* the ring was not used yet */
	return -ENOMEM;
}

static void ring_release(struct ring *r)
{
	/* cannot fail: this file has made the mapping */
	(void)munmap(r->sqes, DEPTH * sizeof(*r->sqes));
	(void)munmap(r->rings, r->rings_bytes);
	(void)close(r->fd); /* no operation is in flight */
}

static _Atomic uint32_t *word(const struct ring *r, uint32_t offset)
{
	return (void *)(r->rings + offset);
}

/* Add a read operation to the ring. */
static void prepare(struct ring *r, int fd, char *buf, size_t len, size_t off)
{
	uint32_t tail = atomic_load(word(r, r->p.sq_off.tail));
	uint32_t slot = tail & (r->p.sq_entries - 1);

	memset(&r->sqes[slot], 0, sizeof(*r->sqes));
	r->sqes[slot].opcode = IORING_OP_READ;
	r->sqes[slot].fd = fd;
	r->sqes[slot].addr = (uintptr_t)buf;
	r->sqes[slot].len = (uint32_t)len;
	r->sqes[slot].off = off;
	r->sqes[slot].user_data = len;
	atomic_store(word(r, r->p.sq_off.array) + slot, slot);
	atomic_store(word(r, r->p.sq_off.tail), tail + 1);
}

/* Submit n reads, wait for all, and check that each was complete. */
static int finish(struct ring *r, unsigned n)
{
	uint32_t head, mask = r->p.cq_entries - 1;
	int rc = 0;

	while (syscall(SYS_io_uring_enter, r->fd, n, n, IORING_ENTER_GETEVENTS,
		       NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	head = atomic_load(word(r, r->p.cq_off.head));
	for (unsigned i = 0; i < n; i++) {
		const struct io_uring_cqe *cqe = (void *)(r->rings +
			r->p.cq_off.cqes + ((head + i) & mask) * sizeof(*cqe));

		if (cqe->res < 0)
			rc = cqe->res;
		else if ((uint64_t)cqe->res != cqe->user_data && rc == 0)
			rc = -EIO;
	}
	atomic_store(word(r, r->p.cq_off.head), head + n);
	return rc;
}

int ring_read(int fd, char *buf, size_t size, size_t step)
{
	struct ring r;
	size_t at = 0;
	int rc = ring_init(&r);

	if (rc < 0)
		return rc;
	while (rc == 0 && at < size) {
		unsigned n = 0;

		for (; n < DEPTH && at < size; n++) {
			size_t len = step < size - at ? step : size - at;

			prepare(&r, fd, buf + at, len, at);
			at += len;
		}
		rc = finish(&r, n);
	}
	ring_release(&r);
	return rc;
}
