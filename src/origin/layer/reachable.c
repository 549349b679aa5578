/* SPDX-License-Identifier: MIT */
/* Checks whether a source answers at all. A call for a path on a hung server
 * blocks in the kernel, so a child process makes the first call. Runs before
 * there are threads. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/probe.h"
#include "origin/layer/stack_impl.h"

/* If the source does not answer for this time, a message says that the mount
 * waits. */
#define NOTICE_MS 3000

/* The maximum number of links that the kernel follows in a path. */
#define LINKS_MAX 40

/* A path whose links are being resolved, name by name. */
struct way {
	char real[PATH_MAX]; /* the resolved part; "" is the root */
	char rest[PATH_MAX]; /* the names that still have to be resolved */
};

/* The child's progress, in memory that parent and child share. The child fills
 * in one of two elements while the parent may read the other one. */
struct reach_progress {
	const char *typed;	/* the path as typed; set once */
	_Atomic unsigned steps; /* release: element [steps % 2] is complete */
	struct way place[2];
};

static bool reach_set_text(char text[PATH_MAX], const char *a, const char *b)
{
	char both[PATH_MAX];
	int n = snprintf(both, sizeof(both), "%s/%s", a, b);

	if (n < 0 || (size_t)n >= sizeof(both))
		return false;
	memcpy(text, both, (size_t)n + 1);
	return true;
}

/* Resolve one more name of the path. Returns false at its end. */
static bool step(struct way *w)
{
	char name[PATH_MAX], next[PATH_MAX], target[PATH_MAX];
	size_t skip = strspn(w->rest, "/"), len;
	ssize_t n;

	len = strcspn(w->rest + skip, "/");
	if (len == 0)
		return false;
	memcpy(name, w->rest + skip, len);
	name[len] = '\0';
	if (strcmp(name, "..") == 0 && strrchr(w->real, '/'))
		*strrchr(w->real, '/') = '\0';
	memcpy(next, w->real, sizeof(next));
	if (strcmp(name, "..") != 0 && strcmp(name, ".") != 0 &&
		!reach_set_text(next, w->real, name))
		return false;
	n = readlink(next, target, sizeof(target) - 1);
	memmove(w->rest, w->rest + skip + len,
		strlen(w->rest + skip + len) + 1);
	if (n < 0) {
		memcpy(w->real, next, sizeof(next));
		return true;
	}
	target[n] = '\0';
	if (target[0] == '/')
		w->real[0] = '\0';
	return reach_set_text(w->rest, target, w->rest + strspn(w->rest, "/"));
}

/* Make all calls that opening the source will make. Runs in the child. */
static void touch(void *arg, int to)
{
	struct reach_progress *g = arg;
	const char *path = g->typed;
	struct way *w = &g->place[0];
	CLEANUP_FD int fd = -1;
	struct statfs fs;
	struct stat st;

	(void)to;
	for (unsigned n = 0; n < PATH_MAX + LINKS_MAX; n++) {
		struct way *next = &g->place[(n + 1) % 2];

		*next = *w;
		if (!step(next))
			break;
		atomic_store(&g->steps, n + 1);
		w = next;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return;
	(void)faccessat(fd, ".", R_OK | X_OK, AT_EACCESS);
	(void)fstat(fd, &st);
	(void)fstatfs(fd, &fs);
}

/* Returns the path with all links replaced that the child has resolved; NULL if
 * the rest contains "..", which may lead to another directory then. */
static char *resolved(struct reach_progress *g)
{
	const struct way *w = &g->place[atomic_load(&g->steps) % 2];
	const char *rest = w->rest + strspn(w->rest, "/");
	size_t len = strlen(rest);
	char *whole;

	while (len > 0 && rest[len - 1] == '/')
		len--;
	if (len == 0)
		return strdup(*w->real ? w->real : "/");
	if (asprintf(&whole, "%s/%.*s", w->real, (int)len, rest) < 0)
		return NULL;
	if (beneath_check(whole + strlen(w->real) + 1) == 0)
		return whole;
	free(whole);
	return NULL;
}

static bool wait_ended(const struct probe *probe, uint64_t timeout_ms)
{
	return probe_wait(probe, timeout_ms > INT32_MAX ? -1 : (int)timeout_ms);
}

static void announce(const char *source, const char *what)
{
	(void)fputs("refrain: source '", stderr);
	escape_print(stderr, source);
	(void)fprintf(stderr, "' %s\n", what);
}

/* Wait for the child. Returns 0 or -ETIMEDOUT. If `path` is not NULL, the wait
 * ends as soon as *path is known. */
static int wait_announced(const struct probe *probe, const char *source,
	unsigned timeout_s, struct reach_progress *g, char **path)
{
	uint64_t left_ms = (uint64_t)timeout_s * 1000;
	uint64_t first_ms = left_ms > NOTICE_MS ? NOTICE_MS : left_ms;
	char what[80];

	if (wait_ended(probe, first_ms))
		return 0;
	if (path)
		*path = resolved(g);
	left_ms -= first_ms;
	if (left_ms == 0 || (path && *path))
		return -ETIMEDOUT;
	(void)snprintf(what, sizeof(what),
		"does not answer yet: waiting for up to %u s", timeout_s);
	announce(source, what);
	return wait_ended(probe, left_ms) ? 0 : -ETIMEDOUT;
}

static int reach_look(struct reach_progress *g, const char *source,
	unsigned timeout_s, char **path, struct error *err)
{
	struct probe probe;
	int rc = probe_start(&probe, touch, g);

	if (rc < 0)
		return error_set(err, rc, "cannot start a process: %m");
	rc = wait_announced(&probe, source, timeout_s, g, path);
	probe_end(&probe);
	if (rc < 0)
		return error_set(err, rc,
			"source '%s' has not answered in %u s; check its "
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
	struct reach_progress *g = mmap(NULL, sizeof(*g),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	*path = NULL;
	if (!typed || g == MAP_FAILED)
		return error_set(
			err, -ENOMEM, "cannot open source '%s': %m", source);
	(void)snprintf(g->place[0].rest, PATH_MAX, "%s", typed);
	g->typed = typed;
	rc = reach_look(g, source, timeout_s, kept ? path : NULL, err);
	if (*path)
		announce(source,
			"does not answer: until it does, only cached files are "
			"served");
	(void)munmap(g, sizeof(*g));
	return rc;
}
