/* SPDX-License-Identifier: MIT */
/* Draws the progress bar; see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/size.h"

#define REDRAW_NS (NS_PER_S / 10)
#define LINE_NS (5 * NS_PER_S)

const char *progress_bar(
	uint64_t done, uint64_t total, char buf[BAR_COLUMNS + 3])
{
	double share = total ? (double)done / (double)total : 0;
	size_t full;

	if (share > 1)
		share = 1;
	full = (size_t)(share * BAR_COLUMNS);
	buf[0] = '[';
	memset(buf + 1, '#', full);
	memset(buf + 1 + full, '.', BAR_COLUMNS - full);
	buf[BAR_COLUMNS + 1] = ']';
	buf[BAR_COLUMNS + 2] = '\0';
	return buf;
}

void progress_begin(struct progress *p)
{
	*p = (struct progress){
		.terminal = isatty(STDERR_FILENO) == 1,
		.begun_ns = clock_now_ns(),
	};
	p->drawn_ns = p->begun_ns;
}

static void print_left(uint64_t seconds)
{
	if (seconds < 3600)
		(void)fprintf(stderr, ", %u:%02u left",
			(unsigned)(seconds / 60), (unsigned)(seconds % 60));
	else
		(void)fprintf(stderr, ", %llu h %02u min left",
			(unsigned long long)(seconds / 3600),
			(unsigned)(seconds % 3600 / 60));
}

static void progress_draw(const struct progress *p, uint64_t items,
	uint64_t bytes, uint64_t total_bytes, const char *note)
{
	double s = (double)(clock_now_ns() - p->begun_ns) / NS_PER_S;
	double rate = s > 0 ? (double)bytes / s : 0;
	char bar[BAR_COLUMNS + 3], done[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX],
		speed[SIZE_TEXT_MAX];

	if (p->terminal)
		(void)fputs("\r\033[K", stderr);
	if (total_bytes)
		(void)fprintf(stderr, "%s %3.0f %%  %s of %s",
			progress_bar(bytes, total_bytes, bar),
			100.0 * (double)bytes / (double)total_bytes,
			size_format(bytes, done),
			size_format(total_bytes, all));
	else
		(void)fprintf(stderr, "%llu items, %s",
			(unsigned long long)items, size_format(bytes, done));
	(void)fprintf(stderr, ", %s/s", size_format((uint64_t)rate, speed));
	if (total_bytes > bytes && rate > 0)
		print_left((uint64_t)((double)(total_bytes - bytes) / rate));
	(void)fprintf(stderr, "%s%s", note, p->terminal ? "" : "\n");
	(void)fflush(stderr);
}

void progress_show(struct progress *p, uint64_t items, uint64_t bytes,
	uint64_t total_bytes, const char *note)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - p->drawn_ns < (p->terminal ? REDRAW_NS : LINE_NS))
		return;
	p->drawn_ns = now_ns;
	p->shown = true;
	progress_draw(p, items, bytes, total_bytes, note);
}

void progress_end(struct progress *p)
{
	if (p->terminal && p->shown)
		(void)fputs("\r\033[K", stderr);
	p->shown = false;
}
