/* SPDX-License-Identifier: MIT */
/* The files that refrain analyze writes after minutes of measuring. */
#ifndef TOOLS_ANALYZE_OUTPUT_H
#define TOOLS_ANALYZE_OUTPUT_H

#include <stdio.h>

#include "common/base/err.h"

/*
 * Check whether `path` can be written, without opening it: that would create
 * the file, or end the reader of a FIFO. Returns 0 if it can be written, if
 * only writing can show that, or if `path` is NULL; otherwise -errno with err
 * set.
 */
int output_check(const char *path, struct error *err);

/*
 * Write the output of `put`. A regular file is replaced when the new one is
 * complete; other files are written in place. Returns 0, or -errno with err
 * set.
 */
int output_write(const char *path, void (*put)(FILE *to, const void *what),
	const void *what, struct error *err);

#endif
