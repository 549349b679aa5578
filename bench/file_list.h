/* SPDX-License-Identifier: MIT */
/*
 * The files below a directory, and a fresh order of them for each epoch.
 * Built by one thread; read-only afterwards.
 */
#ifndef BENCH_FILE_LIST_H
#define BENCH_FILE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct file_item {
	char *path; /* relative to the directory */
	uint64_t size_bytes;
	uint64_t sum; /* as read_file() makes it; of file_list_load_sums() */
};

struct file_list {
	struct file_item *items; /* by path, bytewise, after a walk */
	size_t n, room;
	uint64_t bytes;
};

/*
 * Walk the tree at dir_fd; links and special files are not followed. -errno,
 * the list then holds what was found so far.
 */
int file_list_walk(struct file_list *l, int dir_fd, struct error *err);

/* The files named in a file, one relative path a line, in its order. */
int file_list_load(
	struct file_list *l, int dir_fd, const char *names, struct error *err);

void file_list_release(struct file_list *l);

/* Write "sum size path" lines. */
int file_list_save_sums(
	const struct file_list *l, const char *to, struct error *err);

/*
 * Take sums from such a file: it must name exactly the files of the list (which
 * comes from a walk), with their sizes; -EBADMSG otherwise.
 */
int file_list_load_sums(
	struct file_list *l, const char *from, struct error *err);

/* order[n] becomes a permutation that only (seed, epoch, n) decide. */
void file_list_shuffle(size_t *order, size_t n, uint64_t seed, unsigned epoch);

#endif
