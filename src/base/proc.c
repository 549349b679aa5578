/* SPDX-License-Identifier: MIT */
/* Reads /proc about other processes. No state; any thread. */
#include "base/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

char proc_state(pid_t pid)
{
	char path[64], text[512];
	CLEANUP_FD int fd = -1;
	const char *end;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* "PID (NAME) STATE ...": the name may hold anything. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}
