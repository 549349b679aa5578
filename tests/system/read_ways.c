/* SPDX-License-Identifier: MIT */
/* `read_ways MOUNTED ORIGINAL`: reads the file MOUNTED in each way in which a
 * program can, and compares the bytes with ORIGINAL. Prints the ways that gave
 * wrong bytes; then the exit status is 1. One thread; main() passes all state
 * to the functions. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ring_read.h"

#define PAGE ((size_t)4096)
#define STEP ((size_t)4093) /* prime, so that each alignment occurs */
/* number of bytes that are read with a call for each */
#define ONE_BYTE_MAX ((size_t)20000)

/* The arguments of each way. The descriptor is new for each. */
struct way_args {
	const char *path;
	int fd;
	/* memory to read into: the size and one page, aligned to a page */
	char *got;
	const char *want; /* the right bytes */
	size_t size;
};

static bool same(const struct way_args *a)
{
	return memcmp(a->got, a->want, a->size) == 0;
}

static bool by_read(const struct way_args *a, size_t step)
{
	size_t at = 0;
	ssize_t n;

	while ((n = read(a->fd, a->got + at,
			step < a->size - at ? step : a->size - at + 1)) > 0)
		at += (size_t)n;
	return n == 0 && at == a->size && same(a);
}

static bool way_read(const struct way_args *a)
{
	return by_read(a, a->size + 1);
}

static bool way_read_odd(const struct way_args *a)
{
	return by_read(a, STEP);
}

/* Read the first and the last bytes with one call for each byte. */
static bool way_one_byte(const struct way_args *a)
{
	char byte;

	for (size_t i = 0; i < a->size; i++) {
		if (i == ONE_BYTE_MAX / 2 && a->size > ONE_BYTE_MAX)
			i = a->size - ONE_BYTE_MAX / 2;
		if (pread(a->fd, &byte, 1, (off_t)i) != 1 || byte != a->want[i])
			return false;
	}
	return read(a->fd, &byte, 1) == (a->size > 0) &&
		(a->size == 0 || byte == a->want[0]);
}

static bool way_backward(const struct way_args *a)
{
	size_t at = a->size;

	while (at > 0) {
		size_t n = at < STEP ? at : STEP;

		at -= n;
		if (pread(a->fd, a->got + at, n, (off_t)at) != (ssize_t)n)
			return false;
	}
	return same(a);
}

/* Read before the end, across it, and after it. */
static bool way_end(const struct way_args *a)
{
	char buf[2 * STEP];
	size_t tail = a->size < STEP ? a->size : STEP;
	off_t end = (off_t)a->size;

	return pread(a->fd, buf, sizeof(buf), end) == 0 &&
		pread(a->fd, buf, sizeof(buf), end + 100000) == 0 &&
		pread(a->fd, buf, sizeof(buf), end - (off_t)tail) ==
		(ssize_t)tail &&
		memcmp(buf, a->want + a->size - tail, tail) == 0 &&
		lseek(a->fd, 0, SEEK_END) == end && read(a->fd, buf, 1) == 0;
}

static bool way_readv(const struct way_args *a)
{
	size_t third = a->size / 3;
	struct iovec v[3] = {
		{a->got, third},
		{a->got + third, a->size - 2 * third},
		{a->got + a->size - third, third},
	};
	ssize_t n = readv(a->fd, v, 3);

	return n == (ssize_t)a->size && same(a);
}

static bool by_mmap(const struct way_args *a, int flags, bool backward)
{
	char *map;
	bool good = true;

	if (a->size == 0)
		return true;
	map = mmap(NULL, a->size, PROT_READ, flags, a->fd, 0);
	if (map == MAP_FAILED)
		return false;
	for (size_t at = a->size; backward && at > 0;
		at -= at < PAGE ? at : PAGE)
		good = good && map[at - 1] == a->want[at - 1];
	good = good && memcmp(map, a->want, a->size) == 0;
	/* cannot fail: this function has made the mapping */
	(void)munmap(map, a->size);
	return good;
}

static bool way_mmap_shared(const struct way_args *a)
{
	return by_mmap(a, MAP_SHARED, false);
}

static bool way_mmap_private(const struct way_args *a)
{
	return by_mmap(a, MAP_PRIVATE, true);
}

/* Write to a private mapping, which must not change the file. */
static bool way_mmap_written(const struct way_args *a)
{
	char *map, byte;
	bool good;

	if (a->size == 0)
		return true;
	map = mmap(
		NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, a->fd, 0);
	if (map == MAP_FAILED)
		return false;
	map[0] = (char)~a->want[0];
	good = pread(a->fd, &byte, 1, 0) == 1 && byte == a->want[0] &&
		memcmp(map + 1, a->want + 1, a->size - 1) == 0;
	/* cannot fail: this function has made the mapping */
	(void)munmap(map, a->size);
	return good;
}

static bool way_sendfile(const struct way_args *a)
{
	int to = memfd_create("to", MFD_CLOEXEC);
	size_t at = 0;
	bool good;

	if (to < 0)
		return false;
	while (at < a->size) {
		ssize_t n = sendfile(to, a->fd, NULL, a->size - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	good = at == a->size &&
		pread(to, a->got, a->size + 1, 0) == (ssize_t)a->size &&
		same(a);
	(void)close(to); /* cannot lose data: the file is in memory */
	return good;
}

static bool way_direct(const struct way_args *a)
{
	int fd = open(a->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct way_args direct = *a;
	bool good;

	if (fd < 0)
		return false;
	direct.fd = fd;
	memset(a->got, 0, a->size);
	good = by_read(&direct, 16 * PAGE);
	(void)close(fd); /* cannot lose data: the file was only read */
	return good;
}

static bool way_io_uring(const struct way_args *a)
{
	int rc = ring_read(a->fd, a->got, a->size, 3 * PAGE + 1);

	if (rc == -ENOSYS || rc == -EPERM) {
		puts("no io_uring here");
		return true;
	}
	return rc == 0 && same(a);
}

static const struct {
	const char *name;
	bool (*right)(const struct way_args *a);
} ways[] = {
	/* this must be the first way, while the kernel has no page of the file
	 */
	{"backward reads", way_backward},
	{"read", way_read},
	{"read of odd lengths", way_read_odd},
	{"read of one byte", way_one_byte},
	{"the end of the file", way_end},
	{"readv", way_readv},
	{"shared mapping", way_mmap_shared},
	{"private mapping", way_mmap_private},
	{"private mapping, written to", way_mmap_written},
	{"sendfile", way_sendfile},
	{"O_DIRECT", way_direct},
	{"io_uring", way_io_uring},
};

static int slurp(const char *path, char **bytes, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*size = (size_t)st.st_size;
	*bytes = malloc(*size + 1);
	if (*bytes)
		n = read(fd, *bytes, *size);
	(void)close(fd); /* cannot lose data: the file was only read */
	return n == (ssize_t)*size ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct way_args a = {.path = argv[1]};
	char *want = NULL;
	int wrong = 0;

	if (argc != 3 || slurp(argv[2], &want, &a.size) < 0)
		return 2;
	a.want = want;
	a.got = aligned_alloc(PAGE, (a.size / PAGE + 2) * PAGE);
	if (!a.got)
		return 2;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		a.fd = open(a.path, O_RDONLY | O_CLOEXEC);
		memset(a.got, 0, a.size);
		if (a.fd < 0 || !ways[i].right(&a)) {
			printf("%s: wrong by %s (%s)\n", a.path, ways[i].name,
				strerror(errno));
			wrong = 1;
		}
		if (a.fd >= 0)
			/* cannot lose data: the file was only read */
			(void)close(a.fd);
	}
	free(a.got);
	free(want);
	return wrong;
}
