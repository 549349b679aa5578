/* SPDX-License-Identifier: MIT */
/* The unit in which an analysis counts. A file is one sample, unless its
 * contents show that it has several. */
#ifndef STUDY_SAMPLE_UNIT_IMPL_H
#define STUDY_SAMPLE_UNIT_IMPL_H

#include <stddef.h>

#include "analysis/study/study.h"

/* Number of bytes at the beginning of a file that unit_of() needs. */
#define UNIT_HEAD_BYTES 512

struct file_unit {
	enum profile_unit unit;
	/* name of the format if a file has several samples; NULL: it has one */
	const char *format;
};

/* Returns the unit of a file of file_bytes that begins with these `n` bytes. */
struct file_unit unit_of(const void *head, size_t n, uint64_t file_bytes);

/* Returns the unit of the files below a directory. It reads a few of them, and
 * drops their pages. */
struct file_unit unit_find(const char *top);

#endif
