/* SPDX-License-Identifier: MIT */
/* The part of `refrain recode` that tries forms on a sample. */
#ifndef TOOLS_RECODE_TRY_H
#define TOOLS_RECODE_TRY_H

#include <stdint.h>

/*
 * Try all forms on `images` files of `source` (0: 200), print a table, and
 * write a page to `html` unless it is NULL. `cache` is the text of a size, or
 * NULL. Returns the exit status.
 */
int recode_try_run(const char *source, unsigned images, const char *cache,
	const char *html);

/* Shows the progress; `arg` is a struct progress. recode.c has it. */
void recode_show(
	void *arg, uint64_t files, uint64_t bytes, uint64_t total_bytes);

#endif
