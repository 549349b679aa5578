/* SPDX-License-Identifier: MIT */
/* Reads the processor time of processes; see busy_process_impl.h. */
#include "analysis/study/busy_process_impl.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"

struct busy_process {
	pid_t pid, parent;
	/* processor time of all threads, and of the first thread */
	double s, first_s;
};

/* Returns the processor time of a process. `fields` is the part of its line in
 * /proc that begins with its state. */
static double own_cpu_s(const char *fields, int *parent)
{
	unsigned long user = 0, system = 0;

	(void)sscanf(fields,
		"%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", parent,
		&user, &system);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double first_cpu_s(pid_t pid)
{
	char path[64], text[1024];
	CLEANUP_FD int fd = -1;
	const char *name_end;
	ssize_t n;
	int parent;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid,
		(int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* NAME may contain any character, even ')', so find the last one */
	name_end = strrchr(text, ')');
	return name_end ? own_cpu_s(name_end + 2, &parent) : 0;
}

static void add_process(void *arg, pid_t pid, const char *fields)
{
	struct busy *b = arg;
	struct busy_process p = {.pid = pid, .first_s = first_cpu_s(pid)};
	int parent = 0;

	p.s = own_cpu_s(fields, &parent);
	p.parent = parent;
	if (ARRAY_ROOM(b->process, b->n, &b->room) == 0)
		b->process[b->n++] = p;
}

void busy_look(struct busy *b, const struct trainer *t)
{
	b->n = 0;
	trainer_each(t, add_process, b);
}

void busy_release(struct busy *b)
{
	free(b->process);
	*b = (struct busy){NULL};
}

static bool has_children(const struct busy *b, pid_t pid)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->process[i].parent == pid)
			return true;
	return false;
}

static double used_s(const struct busy *was, const struct busy *now,
	const struct busy_process *p)
{
	struct busy_process before = {.pid = 0}, used;

	for (size_t i = 0; i < was->n; i++)
		if (was->process[i].pid == p->pid)
			before = was->process[i];
	used.s = p->s - before.s;
	used.first_s = p->first_s - before.first_s;
	return has_children(now, p->pid) ? used.s - used.first_s : used.s;
}

double busy_most_s(const struct busy *was, const struct busy *now)
{
	double most = 0;

	for (size_t i = 0; i < now->n; i++)
		most = fmax(most, used_s(was, now, &now->process[i]));
	return most;
}
