/* SPDX-License-Identifier: MIT */
/* Handles daemons that do not answer. A system call for the mount of a stopped
 * daemon waits in the kernel, so a child process makes it. No state. */
#include "analysis/fleet/silent_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/probe.h"
#include "common/base/proc.h"

struct attribute_question {
	int dir_fd;
	const char *name;
	char *buf;
	size_t size;
};

/* Write the value of the attribute, or a byte 0 and -errno. Runs in the child.
 */
static void write_attribute(void *arg, int to)
{
	const struct attribute_question *q = arg;
	char path[64];
	ssize_t n;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", q->dir_fd);
	n = getxattr(path, q->name, q->buf, q->size - 1);
	if (n > 0) {
		(void)!write(to, q->buf, (size_t)n);
		return;
	}
	rc = n < 0 ? -errno : -ENODATA;
	q->buf[0] = '\0';
	memcpy(q->buf + 1, &rc, sizeof(rc));
	(void)!write(to, q->buf, 1 + sizeof(rc));
}

/* Read the child's answer. Returns the length of the value, or -errno. */
static int take_attribute(const struct probe *probe, char *buf, size_t size)
{
	ssize_t n;
	int rc;

	if (!probe_wait(probe, SILENT_TIMEOUT_MS))
		return -ETIMEDOUT;
	/* One read() is enough, because the answer is shorter than what a pipe
	 * takes at once. */
	n = read(probe->fd, buf, size - 1);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	if (buf[0] == '\0' && n == 1 + sizeof(rc)) {
		memcpy(&rc, buf + 1, sizeof(rc));
		return rc;
	}
	buf[n] = '\0';
	return (int)n;
}

int attribute_read(int dir_fd, const char *name, char *buf, size_t size)
{
	struct attribute_question q = {dir_fd, name, buf, size};
	struct probe probe;
	int rc;

	if (size < 1 + sizeof(rc))
		return -ERANGE;
	rc = probe_start(&probe, write_attribute, &q);
	if (rc < 0)
		return rc;
	rc = take_attribute(&probe, buf, size);
	probe_end(&probe);
	return rc;
}

int ctl_silent(const char *mountpoint, pid_t pid, int code, struct error *err)
{
	char who[48] = "";
	char where[600] = "";

	if (mountpoint)
		(void)snprintf(where, sizeof(where), " of '%s'", mountpoint);
	if (pid > 0)
		(void)snprintf(who, sizeof(who), " (process %d)", (int)pid);
	if (pid > 0 && proc_state(pid) == 'T')
		return error_set(err, code,
			"the daemon%s%s is stopped; continue it with 'kill "
			"-CONT %d'",
			where, who, (int)pid);
	if (pid > 0)
		return error_set(err, code,
			"the daemon%s%s does not answer; try again, or end it "
			"with 'kill -9 %d' and detach its mount with 'refrain "
			"umount'",
			where, who, (int)pid);
	return error_set(err, code,
		"the daemon%s does not answer: it is stopped or hangs; detach "
		"the mount with 'refrain umount --lazy'",
		where);
}
