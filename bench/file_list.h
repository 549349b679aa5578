/* SPDX-License-Identifier: MIT */
/*
 * The files below a directory, and a new order of them for each epoch. Built by
 * one thread; read-only afterwards.
 */
#ifndef BENCH_FILE_LIST_H
#define BENCH_FILE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct file_item {
	char *path; /* path relative to the directory */
	uint64_t size_bytes;
	/* sum that read_file() computes; file_list_load_sums() sets it */
	uint64_t sum;
};

struct file_list {
	struct file_item *items; /* after a walk: sorted bytewise by path */
	size_t n, room;
	uint64_t bytes;
};

/* Add all files below dir_fd. Skips links and special files. Returns 0 or
 * -errno; after an error the list has the files found before it. */
int file_list_walk(struct file_list *l, int dir_fd, struct error *err);

/* Read a list of files, one relative path per line, in the order of the lines.
 */
int file_list_load(
	struct file_list *l, int dir_fd, const char *names, struct error *err);

void file_list_release(struct file_list *l);

/* Write one line "sum size path" for each file. */
int file_list_save_sums(
	const struct file_list *l, const char *to, struct error *err);

/* Set the sums from a file that file_list_save_sums() wrote. The list must come
 * from a walk, and the file must name the same files with the same sizes;
 * otherwise returns -EBADMSG. */
int file_list_load_sums(
	struct file_list *l, const char *from, struct error *err);

/* Write a permutation of 0 to n - 1 to `order`. It depends only on (seed,
 * epoch, n). */
void file_list_shuffle(size_t *order, size_t n, uint64_t seed, unsigned epoch);

#endif
