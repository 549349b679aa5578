/* SPDX-License-Identifier: MIT */
/* Reads facts about other processes from /proc. No state; any thread. */
#include "common/base/proc.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* Read the beginning of a file of the process. */
static bool read_about(pid_t pid, const char *file, char *text, size_t room)
{
	char path[64];
	CLEANUP_FD int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, room - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Returns the text after the name in /proc/PID/stat: "STATE PPID ..."; NULL:
 * there is no such process. */
static const char *read_stat(pid_t pid, char *text, size_t room)
{
	const char *end;

	if (!read_about(pid, "stat", text, room))
		return NULL;
	/* The line is "PID (NAME) STATE ...". NAME may contain any character,
	 * even ')', so find the last one. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end + 2 : NULL;
}

char proc_state(pid_t pid)
{
	char text[512];
	const char *at = read_stat(pid, text, sizeof(text));

	return at ? *at : 0;
}

uint64_t proc_born(pid_t pid)
{
	char text[1024];
	const char *at = read_stat(pid, text, sizeof(text));

	/* The state is field 3, the start time field 22. */
	for (int field = 3; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

unsigned proc_fuse_device(pid_t pid, int fd)
{
	static const char name[] = "fuse_connection:";
	char file[32], text[512];
	const char *at;

	(void)snprintf(file, sizeof(file), "fdinfo/%d", fd);
	if (!read_about(pid, file, text, sizeof(text)))
		return 0;
	at = strstr(text, name);
	return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

pid_t proc_of_thread(pid_t thread)
{
	/* large enough for the line, which is near the beginning */
	char text[512];
	const char *line = NULL;

	if (read_about(thread, "status", text, sizeof(text)))
		line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
}

void proc_name(pid_t pid, char name[PROC_NAME_MAX])
{
	if (read_about(pid, "comm", name, PROC_NAME_MAX))
		name[strcspn(name, "\n")] = '\0';
	else
		name[0] = '\0';
}
