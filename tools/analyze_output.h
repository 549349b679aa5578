/* SPDX-License-Identifier: MIT */
/* The files that refrain analyze writes after minutes of measuring. */
#ifndef TOOLS_ANALYZE_OUTPUT_H
#define TOOLS_ANALYZE_OUTPUT_H

#include <stdio.h>

#include "common/base/err.h"

/*
 * Check whether `path` can be written, without opening it: that would create
 * the file, or end the reader of a FIFO. -errno with err set if it cannot; 0 if
 * it can, or if only writing can tell. NULL is 0.
 */
int output_check(const char *path, struct error *err);

/*
 * Write what `put` prints. A regular file is replaced when the new one is
 * complete; anything else is written to. -errno with err set on failure.
 */
int output_write(const char *path, void (*put)(FILE *to, const void *what),
	const void *what, struct error *err);

#endif
