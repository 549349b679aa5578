/* SPDX-License-Identifier: MIT */
/*
 * Whether a source answers at all. A path on a server that hangs holds whoever
 * looks at it in the kernel, where only a signal that kills is heard: so a
 * child process looks first, and is killed when its time is over. Runs before
 * there are threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "daemon/mount_impl.h"

/* After that long the wait is announced. */
#define NOTICE_MS 3000

/*
 * How far the child got with resolving a path; in memory that both have. It
 * fills one of the places while the parent may read the other.
 */
struct progress {
	_Atomic unsigned parts; /* release: that many are in place parts % 2 */
	struct {
		char real[PATH_MAX]; /* of the parts so far */
		size_t used;	     /* length of those in the path */
	} place[2];
};

static void note_parts(struct progress *g, const char *path, size_t used)
{
	unsigned n = atomic_load(&g->parts) + 1;
	char part[PATH_MAX], real[PATH_MAX];

	(void)snprintf(part, sizeof(part), "%.*s", (int)used, path);
	if (!realpath(part, real))
		return;
	memcpy(g->place[n % 2].real, real, sizeof(real));
	g->place[n % 2].used = used;
	atomic_store(&g->parts, n);
}

/* The child: all that opening the source will ask, whatever the answers. */
static void touch(struct progress *g, const char *path)
{
	CLEANUP_FD int fd = -1;
	struct statfs fs;
	struct stat st;

	for (size_t i = 1; i < strlen(path); i++)
		if (path[i] == '/')
			note_parts(g, path, i);
	note_parts(g, path, strlen(path));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return;
	(void)faccessat(fd, ".", R_OK | X_OK, AT_EACCESS);
	(void)fstat(fd, &st);
	(void)fstatfs(fd, &fs);
}

/* What is known of the path; NULL if what is left of it may lead elsewhere. */
static char *resolved(struct progress *g, const char *path)
{
	unsigned n = atomic_load(&g->parts);
	const char *real = n > 0 ? g->place[n % 2].real : "";
	const char *rest = path + (n > 0 ? g->place[n % 2].used : 0);
	size_t len = strlen(path);
	char *whole;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (beneath_check(rest + strspn(rest, "/")) < 0 && rest < path + len)
		return NULL;
	if (asprintf(&whole, "%s%.*s", strcmp(real, "/") == 0 ? "" : real,
		    rest < path + len ? (int)(path + len - rest) : 0, rest) < 0)
		return NULL;
	return whole;
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

static void announce(const char *source, const char *what)
{
	(void)fputs("refrain: source '", stderr);
	escape_print(stderr, source);
	(void)fprintf(stderr, "' %s\n", what);
}

/* 0 or -ETIMEDOUT. */
static int wait_announced(
	int fd, const char *source, unsigned timeout_s, bool kept)
{
	uint64_t left_ms = (uint64_t)timeout_s * 1000;
	char what[80];

	if (left_ms > NOTICE_MS) {
		if (wait_ended(fd, NOTICE_MS))
			return 0;
		if (kept)
			return -ETIMEDOUT;
		(void)snprintf(what, sizeof(what),
			"does not answer yet: waiting for %u s at most",
			timeout_s);
		announce(source, what);
		left_ms -= NOTICE_MS;
	}
	return wait_ended(fd, left_ms) ? 0 : -ETIMEDOUT;
}

/* Look in a child process, which is killed when its time is over. */
static int look(struct progress *g, const char *source, const char *path,
	unsigned timeout_s, bool kept, struct error *err)
{
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot make a pipe: %m");
	pid = fork();
	if (pid == 0) {
		touch(g, path);
		_exit(0);
	}
	(void)close(fds[1]);
	rc = pid < 0 ? -errno : wait_announced(fds[0], source, timeout_s, kept);
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

static char *absolute(const char *source)
{
	CLEANUP_FREE char *cwd = getcwd(NULL, 0);
	char *path;

	if (source[0] == '/')
		return strdup(source);
	return cwd && asprintf(&path, "%s/%s", cwd, source) > 0 ? path : NULL;
}

int reach_directory(const char *source, unsigned timeout_s, bool kept,
	char **path, struct error *err)
{
	CLEANUP_FREE char *typed = absolute(source);
	struct progress *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	*path = NULL;
	if (!typed || g == MAP_FAILED)
		return error_set(
			err, -ENOMEM, "cannot open source '%s': %m", source);
	rc = look(g, source, typed, timeout_s, kept, err);
	if (rc == -ETIMEDOUT && kept)
		*path = resolved(g, typed);
	if (*path)
		announce(source,
			"does not answer: what is cached is served, and the "
			"rest when it answers");
	(void)munmap(g, sizeof(*g));
	return rc;
}
