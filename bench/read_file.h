/* SPDX-License-Identifier: MIT */
/*
 * Reads a whole file in the ways in which programs do. A reader belongs to one
 * thread.
 */
#ifndef BENCH_READ_FILE_H
#define BENCH_READ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum read_way {
	READ_READ,    /* open, read up to 1 MiB at a time, close */
	READ_MMAP,    /* open, map, touch every page, unmap, close */
	READ_DIRECT,  /* open O_DIRECT, read up to 1 MiB at a time, close */
	READ_PREAD4K, /* open, pread 4 KiB at a time, close */
};

/* Parse the name of a way to read: read, mmap, direct or pread4k. Returns 0 or
 * -EINVAL. */
int read_way_parse(const char *name, enum read_way *way);

struct reader {
	enum read_way way;
	bool sum; /* compute a hash of the file */
	/* drop the file's pages from the page cache after reading */
	bool forget;
	unsigned char *buf;  /* READ_BUF_BYTES, aligned for O_DIRECT */
	unsigned char *part; /* memory for the block whose hash is computed */
	size_t part_bytes;
	uint64_t so_far;
};

#define READ_BUF_BYTES ((size_t)1 << 20)

/* Initialise a reader. Returns 0 or -ENOMEM. */
int reader_init(struct reader *r, enum read_way way, bool sum);
void reader_release(struct reader *r);

/* Read a file of known size. Returns 0 or -errno; -EBADMSG if the file ends
 * earlier. If sums are on, *sum gets the chained XXH3 of the file's blocks,
 * which is the same for each way to read; otherwise 0. */
int read_file(struct reader *r, int dir_fd, const char *path,
	uint64_t size_bytes, uint64_t *sum);

#endif
