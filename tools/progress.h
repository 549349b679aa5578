/* SPDX-License-Identifier: MIT */
/* Shows progress on standard error. On a terminal, a bar is redrawn; elsewhere,
 * a line is printed now and then. One thread. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal, shown;
	uint64_t begun_ns, drawn_ns;
};

/* Length of a bar without its brackets. */
#define BAR_COLUMNS 24

/* Write a bar such as "[####....]" for `done` of `total` into buf. Returns buf.
 */
const char *progress_bar(
	uint64_t done, uint64_t total, char buf[BAR_COLUMNS + 3]);

void progress_begin(struct progress *p);

/* Show the progress, unless it was shown a moment ago. If total_bytes is 0, the
 * total is unknown: then neither percentage nor remaining time is shown. */
void progress_show(struct progress *p, uint64_t items, uint64_t bytes,
	uint64_t total_bytes, const char *note);

/* End the bar, to make room for other output. */
void progress_end(struct progress *p);

#endif
