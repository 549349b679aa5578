/* SPDX-License-Identifier: MIT */
/*
 * Finds the reading process. A request names the thread, but plans need the
 * process, which /proc tells. A few threads do most reads, so each worker
 * caches the answer for a second. After that the thread may have ended and its
 * number been reused. A thread of a process that we cannot see has number 0.
 */
#include "fs/fs_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define REMEMBER_NS NS_PER_S

/* The line is among the first of the file. */
#define STATUS_BYTES 512

static pid_t ask_proc(pid_t thread)
{
	char path[48], text[STATUS_BYTES];
	CLEANUP_FD int fd = -1;
	const char *line;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
}

pid_t fs_process_of(struct fs_worker *w, pid_t thread)
{
	struct fs_reader *r = &w->reader[(unsigned)thread % FS_READERS];
	uint64_t now_ns = clock_now_ns();

	if (thread <= 0)
		return 0;
	if (r->thread != thread || r->until_ns < now_ns)
		*r = (struct fs_reader){
			thread, ask_proc(thread), now_ns + REMEMBER_NS};
	return r->process;
}
