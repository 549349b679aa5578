/* SPDX-License-Identifier: MIT */
/* The lines of an index as `refrain index` writes it; doc/formats.md. */
#ifndef ORIGIN_NAMED_IMPL_H
#define ORIGIN_NAMED_IMPL_H

#include <limits.h>

#include "origin/origin.h"

/* A walk over the lines of an index. Zero it, then set `at` and `end`. */
struct index_lines {
	const char *at, *end;
	uint64_t line; /* the last one's number, from 1 */
	bool has_tags, crlf;
	/* The last file. */
	char path[PATH_MAX];
	struct file_version version;
};

/*
 * The next file: 1; 0 at the end of the text; -EBADMSG with err set, which
 * names the line, for a line that is not an index's.
 */
int index_lines_next(struct index_lines *x, struct error *err);

#endif
