/* SPDX-License-Identifier: MIT */
/*
 * Handles daemons that do not answer. A call on the mount of a stopped daemon
 * waits in the kernel, and only SIGKILL ends it. So a child process makes the
 * call and is killed on time-out. No state.
 */
#include "analysis/fleet/silent_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/proc.h"

/* In the child: write the value, or a byte 0 and -errno. */
static void write_attribute(
	int dir_fd, const char *name, int to, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	n = getxattr(path, name, buf, size - 1);
	if (n > 0) {
		(void)!write(to, buf, (size_t)n);
		return;
	}
	rc = n < 0 ? -errno : -ENODATA;
	buf[0] = '\0';
	memcpy(buf + 1, &rc, sizeof(rc));
	(void)!write(to, buf, 1 + sizeof(rc));
}

/* Its length, or -errno. */
static int take_attribute(int from, char *buf, size_t size)
{
	struct pollfd pfd = {.fd = from, .events = POLLIN};
	ssize_t n;
	int rc;

	do
		rc = poll(&pfd, 1, SILENT_TIMEOUT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	/* Shorter than what a pipe takes at once. */
	n = read(from, buf, size - 1);
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
	int pipe_fds[2], rc;
	pid_t pid;

	if (size < 1 + sizeof(rc))
		return -ERANGE;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		write_attribute(dir_fd, name, pipe_fds[1], buf, size);
		_exit(0);
	}
	rc = pid < 0 ? -errno : 0;
	(void)close(pipe_fds[1]);
	if (pid > 0) {
		rc = take_attribute(pipe_fds[0], buf, size);
		(void)kill(pid, SIGKILL); /* it has ended, or hangs */
		(void)waitpid(pid, NULL, rc == -ETIMEDOUT ? WNOHANG : 0);
	}
	(void)close(pipe_fds[0]);
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
