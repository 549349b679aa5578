/* SPDX-License-Identifier: MIT */
/*
 * Whether a source answers at all. A path on a server that hangs holds whoever
 * looks at it in the kernel, where only a signal that kills is heard: so a
 * child process looks first, and is killed when its time is over. Runs before
 * there are threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "daemon/mount_impl.h"

/* After that long the wait is announced. */
#define NOTICE_MS 3000

/* The child: all that opening the source will ask, whatever the answers. */
static void touch(const char *source)
{
	CLEANUP_FREE char *real = realpath(source, NULL);
	CLEANUP_FD int fd =
		open(source, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return;
	(void)faccessat(fd, ".", R_OK | X_OK, AT_EACCESS);
	(void)fstat(fd, &st);
	(void)fstatfs(fd, &fs);
}

/* 1: the child has ended, 0: the time is over. */
static int wait_ended(int fd, uint64_t timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(
			&pfd, 1, timeout_ms > INT32_MAX ? -1 : (int)timeout_ms);
	while (rc < 0 && errno == EINTR);
	return rc != 0;
}

static void announce(const char *source, unsigned timeout_s)
{
	(void)fputs("refrain: source '", stderr);
	escape_print(stderr, source);
	(void)fprintf(stderr,
		"' does not answer yet: waiting for %u s at most\n", timeout_s);
}

/* 0 or -ETIMEDOUT. */
static int wait_announced(int fd, const char *source, unsigned timeout_s)
{
	uint64_t left_ms = (uint64_t)timeout_s * 1000;

	if (left_ms > NOTICE_MS) {
		if (wait_ended(fd, NOTICE_MS))
			return 0;
		announce(source, timeout_s);
		left_ms -= NOTICE_MS;
	}
	return wait_ended(fd, left_ms) ? 0 : -ETIMEDOUT;
}

int reach_directory(const char *source, unsigned timeout_s, struct error *err)
{
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot make a pipe: %m");
	pid = fork();
	if (pid == 0) {
		touch(source);
		_exit(0);
	}
	(void)close(fds[1]);
	rc = pid < 0 ? -errno : wait_announced(fds[0], source, timeout_s);
	(void)close(fds[0]);
	if (pid < 0)
		return error_set(err, rc, "cannot start a process: %m");
	(void)kill(pid, SIGKILL); /* it has ended, or hangs */
	(void)waitpid(pid, NULL, rc < 0 ? WNOHANG : 0);
	if (rc < 0)
		return error_set(err, rc,
			"source '%s' has not answered in %u s; see to its "
			"storage, or give a longer --timeout",
			source, timeout_s);
	return 0;
}
