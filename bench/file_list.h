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
	char *path; /* relative to the directory */
	uint64_t size_bytes;
	uint64_t sum; /* sum by read_file(); set by file_list_load_sums() */
};

struct file_list {
	struct file_item *items; /* sorted by path, bytewise, after a walk */
	size_t n, room;
	uint64_t bytes;
};

/*
 * Walk the tree at dir_fd; links and special files are not followed. Returns 0,
 * or -errno, and then the list has the files found so far.
 */
int file_list_walk(struct file_list *l, int dir_fd, struct error *err);

/* Read a list of files, one relative path a line, and keep its order. */
int file_list_load(
	struct file_list *l, int dir_fd, const char *names, struct error *err);

void file_list_release(struct file_list *l);

/* Write "sum size path" lines. */
int file_list_save_sums(
	const struct file_list *l, const char *to, struct error *err);

/*
 * Set the sums from a file of file_list_save_sums(). It must name exactly the
 * files of the list (which comes from a walk), with their sizes; otherwise
 * returns -EBADMSG.
 */
int file_list_load_sums(
	struct file_list *l, const char *from, struct error *err);

/* Write a permutation to order[n], which depends only on (seed, epoch, n). */
void file_list_shuffle(size_t *order, size_t n, uint64_t seed, unsigned epoch);

#endif
