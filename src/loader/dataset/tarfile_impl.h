/* SPDX-License-Identifier: MIT */
/*
 * Reads a tar by its headers: v7, ustar, GNU and pax, as in tar(5). The bytes
 * come from outside: every length is checked against the file before use. A
 * reader belongs to one thread.
 */
#ifndef DATASET_TARFILE_IMPL_H
#define DATASET_TARFILE_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define TAR_BLOCK 512
#define TAR_WINDOW 4096
/* Limit for a name or an extended header; real ones are shorter. */
#define TAR_EXTRA_MAX ((uint64_t)1 << 20)

/* A regular file in the tar. */
struct tar_member {
	const char *name; /* valid until the next call */
	uint64_t offset, bytes;
};

struct tar_reader {
	struct look *l;
	const char *file; /* for messages */
	int fd;
	uint64_t size, at; /* size of the file; offset of the next header */
	char *name;	   /* of the next member, or NULL: as its header says */
	bool has_size;	   /* an extra header gave its size: */
	uint64_t member_bytes;
	uint64_t window_at;
	size_t window_bytes;
	char field[TAR_BLOCK]; /* a name of a header */
	unsigned char window[TAR_WINDOW];
};

void tar_begin(struct tar_reader *t, struct look *l, const char *file, int fd,
	uint64_t size);
void tar_release(struct tar_reader *t);

/* Returns 1 with the next regular file in *m, 0 at the end of the archive, or
 * -errno with a message. */
int tar_next(struct tar_reader *t, struct tar_member *m);

/* Get n <= TAR_BLOCK bytes at offset `at` of the file. *out is valid until the
 * next call. Returns 0 or -errno. */
int tar_bytes(
	struct tar_reader *t, uint64_t at, size_t n, const unsigned char **out);

#endif
