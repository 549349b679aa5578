/* SPDX-License-Identifier: MIT */
/* Writes the output files of refrain analyze. They are written after a
 * measurement of minutes, so they are checked before it. */
#ifndef TOOLS_ANALYZE_OUTPUT_H
#define TOOLS_ANALYZE_OUTPUT_H

#include <stdio.h>

#include "common/base/err.h"

/* Check whether `path` can be written, without opening it: to open it would
 * create the file, or end the reader of a FIFO. Returns 0 if `path` is NULL, if
 * it can be written, or if only an attempt to write can show that. Otherwise
 * returns -errno with err set. */
int output_check(const char *path, struct error *err);

/* Call `put` to write the output. If `path` is a regular file, a complete new
 * file replaces it; other files are written in place. Returns 0, or -errno with
 * err set. */
int output_write(const char *path, void (*put)(FILE *to, const void *what),
	const void *what, struct error *err);

#endif
