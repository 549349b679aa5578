/* SPDX-License-Identifier: MIT */
/*
 * Parses the lines of an index that `refrain index` wrote; see doc/formats.md.
 */
#ifndef LAYER_NAMED_IMPL_H
#define LAYER_NAMED_IMPL_H

#include <limits.h>

#include "common/format/jpeg_levels.h"
#include "origin/origin.h"

/* A walk over the lines of an index. The caller zeroes it, then sets `at` and
 * `end`. */
struct index_lines {
	const char *at, *end;
	/* number of the last line that was read, beginning with 1 */
	uint64_t line;
	bool has_tags, has_levels, crlf;
	/* The last file that was read. */
	char path[PATH_MAX];
	struct file_version version;
	/* The levels of the file, as jpeg_levels() finds them. */
	uint64_t level[JPEG_DROP_BITS_MAX];
};

/*
 * Parse the next file. Returns 1, 0 at the end of the text, or -EBADMSG for an
 * invalid line, which err names.
 */
int index_lines_next(struct index_lines *x, struct error *err);

#endif
