/* SPDX-License-Identifier: MIT */
/*
 * Reads the headers of a tar in the formats v7, ustar, GNU and pax; see tar(5).
 * The bytes are not trusted: every length is checked against the size of the
 * file before it is used. A reader belongs to one thread.
 */
#ifndef DATASET_TARFILE_IMPL_H
#define DATASET_TARFILE_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define TAR_BLOCK 512
#define TAR_WINDOW 4096
/* Limit for a long name or an extended header, in bytes; real ones are
 * shorter. */
#define TAR_EXTRA_MAX ((uint64_t)1 << 20)

/* A regular file in a tar. */
struct tar_member {
	const char *name; /* valid until the next call */
	uint64_t offset, bytes;
};

struct tar_reader {
	struct look *l;
	const char *file; /* name of the tar, for messages */
	int fd;
	uint64_t size, at; /* file size; offset of the next header */
	/* From an extended header, for the next member; NULL: use its own
	 * header */
	char *name;
	bool has_size; /* an extended header gave member_bytes */
	uint64_t member_bytes;
	uint64_t window_at;
	size_t window_bytes;
	char field[TAR_BLOCK]; /* the name from a header, with a NUL */
	unsigned char window[TAR_WINDOW];
};

void tar_begin(struct tar_reader *t, struct look *l, const char *file, int fd,
	uint64_t size);
void tar_release(struct tar_reader *t);

/* Get the next regular file. Returns 1 with the file in *m, 0 at the end of the
 * archive, or -errno with a message. */
int tar_next(struct tar_reader *t, struct tar_member *m);

/* Get n <= TAR_BLOCK bytes at offset `at` of the file. *out is valid until the
 * next call. Returns 0 or -errno with a message. */
int tar_bytes(
	struct tar_reader *t, uint64_t at, size_t n, const unsigned char **out);

#endif
