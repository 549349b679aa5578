/* SPDX-License-Identifier: MIT */
/*
 * Shows progress on standard error: a bar that is redrawn on a terminal, or a
 * line now and then elsewhere. One thread.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal, shown;
	uint64_t begun_ns, drawn_ns;
};

/* Columns of a bar, without its brackets. */
#define BAR_COLUMNS 24

/* Write a bar such as "[####....]" for `done` of `total` into buf; returns buf.
 */
const char *progress_bar(
	uint64_t done, uint64_t total, char buf[BAR_COLUMNS + 3]);

void progress_begin(struct progress *p);

/*
 * Show the progress, unless it was shown a moment ago. total_bytes 0: the total
 * is unknown, and neither share nor time left is shown.
 */
void progress_show(struct progress *p, uint64_t items, uint64_t bytes,
	uint64_t total_bytes, const char *note);

/* End the bar, to make room for other output. */
void progress_end(struct progress *p);

#endif
