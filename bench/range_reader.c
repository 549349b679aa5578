/* SPDX-License-Identifier: MIT */
/*
 * range-reader: reads ranges of one large file in random order, through one
 * descriptor and without a hint to the kernel, as a loader with the index of a
 * shard does. The ranges do not overlap, so no byte is requested twice. One
 * thread.
 *
 *   range-reader FILE COUNT BYTES ALIGN [SEED]
 *
 * Offsets are multiples of ALIGN; 1 is anywhere. Prints what it read and how
 * long that took as one JSON object.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"

struct ranges {
	int fd;
	uint64_t count, bytes, align, seed;
	/* the file is divided into parts of this length; each range is in a
	 * part of its own */
	uint64_t stride;
	unsigned char *buf;
};

static int fail(const char *what)
{
	fprintf(stderr, "range-reader: %s\n", what);
	return EXIT_FAILURE;
}

static uint64_t chance(const struct ranges *r, uint64_t i, uint64_t below)
{
	return hash64(&i, sizeof(i), r->seed) % below;
}

static uint64_t offset_of(const struct ranges *r, uint64_t i)
{
	uint64_t room = (r->stride - r->bytes) / r->align + 1;

	return i * r->stride + chance(r, i, room) * r->align;
}

static void shuffle(const struct ranges *r, uint64_t *order)
{
	for (uint64_t i = 0; i < r->count; i++)
		order[i] = i;
	for (uint64_t i = r->count; i > 1; i--) {
		uint64_t j = chance(r, r->count + i, i), t = order[j];

		order[j] = order[i - 1];
		order[i - 1] = t;
	}
}

static int read_range(const struct ranges *r, uint64_t off)
{
	uint64_t done = 0;

	while (done < r->bytes) {
		ssize_t n = pread(r->fd, r->buf + done, r->bytes - done,
			(off_t)(off + done));

		if (n <= 0)
			return -1;
		done += (uint64_t)n;
	}
	return 0;
}

static int read_all(const struct ranges *r)
{
	CLEANUP_FREE uint64_t *order = calloc(r->count, sizeof(*order));
	uint64_t begin_ns = clock_now_ns();

	if (!order)
		return fail("out of memory");
	shuffle(r, order);
	for (uint64_t i = 0; i < r->count; i++)
		if (read_range(r, offset_of(r, order[i])) < 0)
			return fail("a read failed");
	printf("{\"reads\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"seconds\": %.3f}\n",
		r->count, r->count * r->bytes,
		(double)(clock_now_ns() - begin_ns) / (double)NS_PER_S);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	CLEANUP_FD int fd = -1;
	CLEANUP_FREE unsigned char *buf = NULL;
	struct ranges r;
	struct stat st;

	if (argc < 5 || argc > 6)
		return fail("usage: range-reader FILE COUNT BYTES ALIGN "
			    "[SEED]");
	r.count = strtoull(argv[2], NULL, 10);
	r.bytes = strtoull(argv[3], NULL, 10);
	r.align = strtoull(argv[4], NULL, 10);
	r.seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
	r.fd = fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail("cannot open the file");
	if (r.count == 0 || r.bytes == 0 || r.align == 0)
		return fail("no number may be 0");
	r.stride = (uint64_t)st.st_size / r.count / r.align * r.align;
	if (r.stride < r.bytes)
		return fail("the file is too short for so many ranges");
	r.buf = buf = malloc(r.bytes);
	return buf ? read_all(&r) : fail("out of memory");
}
