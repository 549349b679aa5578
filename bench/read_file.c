/* SPDX-License-Identifier: MIT */
/* Reads a whole file; see read_file.h. Each thread has its own reader. */
#include "read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"

#define PART_BYTES ((size_t)64 << 10)
#define PAGE_BYTES ((size_t)4096) /* the smallest size of a page */

static const char *const way_names[] = {
	[READ_READ] = "read",
	[READ_MMAP] = "mmap",
	[READ_DIRECT] = "direct",
	[READ_PREAD4K] = "pread4k",
};

int read_way_parse(const char *name, enum read_way *way)
{
	for (int i = 0; i <= READ_PREAD4K; i++)
		if (strcmp(name, way_names[i]) == 0) {
			*way = (enum read_way)i;
			return 0;
		}
	return -EINVAL;
}

int reader_init(struct reader *r, enum read_way way, bool sum)
{
	*r = (struct reader){.way = way, .sum = sum};
	r->buf = aligned_alloc(PAGE_BYTES, READ_BUF_BYTES);
	r->part = malloc(PART_BYTES);
	if (r->buf && r->part)
		return 0;
	reader_release(r);
	return -ENOMEM;
}

void reader_release(struct reader *r)
{
	free(r->buf);
	free(r->part);
	r->buf = r->part = NULL;
}

/* -- Sums: of blocks of fixed size, which do not depend on the reads -- */

static void sum_flush(struct reader *r)
{
	r->so_far = hash64(r->part, r->part_bytes, r->so_far);
	r->part_bytes = 0;
}

static void sum_add(struct reader *r, const unsigned char *data, size_t bytes)
{
	while (r->sum && bytes > 0) {
		size_t n = PART_BYTES - r->part_bytes;

		n = n < bytes ? n : bytes;
		memcpy(r->part + r->part_bytes, data, n);
		r->part_bytes += n;
		data += n;
		bytes -= n;
		if (r->part_bytes == PART_BYTES)
			sum_flush(r);
	}
}

/* -- Ways to read -- */

/* Read with read(). The size is known, so a file that fits the buffer takes one
 * call. */
static int by_read(struct reader *r, int fd, uint64_t size_bytes)
{
	uint64_t got = 0;

	do {
		ssize_t n = read(fd, r->buf, READ_BUF_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0 && got < size_bytes)
			return -EBADMSG;
		sum_add(r, r->buf, (size_t)n);
		got += (uint64_t)n;
	} while (got < size_bytes);
	return got == size_bytes ? 0 : -EBADMSG;
}

static int by_pread(struct reader *r, int fd, uint64_t size_bytes)
{
	uint64_t got = 0;

	while (got < size_bytes) {
		ssize_t n = pread(fd, r->buf, PAGE_BYTES, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		sum_add(r, r->buf, (size_t)n);
		got += (uint64_t)n;
	}
	return 0;
}

static int by_mmap(struct reader *r, int fd, uint64_t size_bytes)
{
	unsigned char touched = 0;
	unsigned char *map;

	if (size_bytes == 0)
		return 0;
	map = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	for (uint64_t at = 0; at < size_bytes; at += PAGE_BYTES)
		touched ^= map[at];
	r->buf[0] = touched; /* keeps the compiler from removing the loop */
	sum_add(r, map, size_bytes);
	/* cannot fail: this function has made the mapping */
	(void)munmap(map, size_bytes);
	return 0;
}

int read_file(struct reader *r, int dir_fd, const char *path,
	uint64_t size_bytes, uint64_t *sum)
{
	int flags =
		O_RDONLY | O_CLOEXEC | (r->way == READ_DIRECT ? O_DIRECT : 0);
	CLEANUP_FD int fd = openat(dir_fd, path, flags);
	int rc = -EINVAL;

	if (fd < 0)
		return -errno;
	r->so_far = 0;
	r->part_bytes = 0;
	switch (r->way) {
	case READ_READ:
	case READ_DIRECT:
		rc = by_read(r, fd, size_bytes);
		break;
	case READ_MMAP:
		rc = by_mmap(r, fd, size_bytes);
		break;
	case READ_PREAD4K:
		rc = by_pread(r, fd, size_bytes);
		break;
	}
	if (r->sum && r->part_bytes)
		sum_flush(r);
	if (r->forget) /* only a hint: the kernel may keep some pages */
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	*sum = r->so_far;
	return rc;
}
