/* SPDX-License-Identifier: MIT */
/*
 * The unit in which an analysis counts: a file is one sample, unless its
 * contents show that it holds several.
 */
#ifndef STUDY_SAMPLE_UNIT_IMPL_H
#define STUDY_SAMPLE_UNIT_IMPL_H

#include <stddef.h>

#include "analysis/study/study.h"

/* Bytes at the beginning of a file that unit_of() looks at. */
#define UNIT_HEAD_BYTES 512

struct file_unit {
	enum profile_unit unit;
	/* format of a file with several samples; NULL: it has one */
	const char *format;
};

/* The unit for a file of file_bytes that begins with these `n` bytes. */
struct file_unit unit_of(const void *head, size_t n, uint64_t file_bytes);

/* The unit for the files below a directory, found by looking at a few of them.
 * The pages that this reads are dropped. */
struct file_unit unit_find(const char *top);

#endif
