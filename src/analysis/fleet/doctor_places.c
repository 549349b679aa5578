/* SPDX-License-Identifier: MIT */
/*
 * Checks the directories of tiers, and sources. For a directory: its space, its
 * mode, and reading one byte of a file. For a URL: the address of the host, and
 * whether the host accepts a connection.
 *
 * Each check is a child process, because a disk or a server may hang. All
 * checks run at the same time, and together take at most PLACES_MS. A child
 * writes lines "LEVEL<tab>TEXT<tab>ADVICE".
 */
#include "analysis/fleet/doctor_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/probe.h"

#define PLACES_MS 4000
/* If less than this share of a disk is free, a finding says so. */
#define FREE_FEW_PCT 2u
/* Maximum number of files to try until one can be read. */
#define NAMES_MAX 1000u
/* If a file is younger than now by more than this, the clock of the host that
 * wrote it was ahead. */
#define CLOCK_SLACK_S 120
#define ANSWER_MAX 16384

static void say(int to, enum doctor_level level, const char *advice,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void say(int to, enum doctor_level level, const char *advice,
	const char *fmt, ...)
{
	char text[DOCTOR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long text is cut */
	va_end(ap);
	for (char *c = text; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
	(void)dprintf(to, "%d\t%s\t%s\n", (int)level, text, advice);
}

static void probe_space(int to, const char *dir, const struct statvfs *fs)
{
	if (fs->f_flag & ST_RDONLY)
		say(to, DOCTOR_BAD,
			"look at the kernel log, and mount it for writing "
			"again",
			"the file system of cache '%s' is read-only", dir);
	if (fs->f_blocks > 0 &&
		fs->f_bavail * 100 < fs->f_blocks * FREE_FEW_PCT)
		say(to, DOCTOR_WARN,
			"delete files beside the cache, or mount with a "
			"smaller size or --keep-free",
			"the disk of cache '%s' is full", dir);
	if (fs->f_files > 0 && fs->f_favail * 100 < fs->f_files * FREE_FEW_PCT)
		say(to, DOCTOR_WARN,
			"delete files beside the cache; a cached item is a "
			"file, so small items need many",
			"the disk of cache '%s' has no more inodes", dir);
}

static void probe_tier_files(int to, const char *dir)
{
	static const char *const names[] = {
		"manifest", "refrain-lock", "refrain-tier"};
	char path[PATH_MAX + 32];
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (stat(path, &st) == 0 &&
			st.st_mtime > time(NULL) + CLOCK_SLACK_S) {
			say(to, DOCTOR_BAD,
				"set the clock, and start a service such as "
				"chrony",
				"the clock is wrong: '%s' was written in the "
				"future",
				path);
			return;
		}
	}
}

static void probe_tier(int to, const char *dir)
{
	struct statvfs fs;
	struct stat st;

	if (stat(dir, &st) < 0) {
		say(to, DOCTOR_BAD,
			"mount its disk, then mount the dataset again",
			"cache '%s' is gone: %s", dir, strerror(errno));
		return;
	}
	if (statvfs(dir, &fs) < 0) {
		say(to, DOCTOR_BAD, "check its disk",
			"cannot look at cache '%s': %s", dir, strerror(errno));
		return;
	}
	if (!(fs.f_flag & ST_RDONLY) && access(dir, W_OK | X_OK) < 0)
		say(to, DOCTOR_WARN, "run this as the user of the mount",
			"this user cannot write to cache '%s': %s", dir,
			strerror(errno));
	probe_space(to, dir, &fs);
	probe_tier_files(to, dir);
	say(to, DOCTOR_OK, "", "cache '%s' can be reached", dir);
}

/* Read a byte of the first file of a directory or of its subdirectories.
 * Returns 1 if a file was read, 0 if there is none, or -errno. */
static int read_one(const char *dir, unsigned depth, unsigned *left)
{
	CLEANUP_DIR DIR *d = opendir(dir);
	const struct dirent *e;
	char path[PATH_MAX], byte;
	struct stat st;
	int rc = 0;

	if (!d)
		return -errno;
	while (rc == 0 && *left > 0 && (e = readdir(d))) {
		CLEANUP_FD int fd = -1;

		if (e->d_name[0] == '.' ||
			(size_t)snprintf(path, sizeof(path), "%s/%s", dir,
				e->d_name) >= sizeof(path))
			continue;
		--*left;
		if (stat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth > 0)
			rc = read_one(path, depth - 1, left);
		if (!S_ISREG(st.st_mode) || st.st_size == 0)
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 || read(fd, &byte, 1) < 0)
			return -errno;
		rc = 1;
	}
	return rc;
}

static void probe_source(int to, const char *dir)
{
	unsigned left = NAMES_MAX;
	int rc = read_one(dir, 4, &left);

	if (rc == -ENOENT || rc == -ENOTDIR)
		say(to, DOCTOR_BAD, "mount its file system",
			"the source '%s' is gone: %s", dir, strerror(-rc));
	else if (rc < 0)
		say(to, DOCTOR_BAD,
			"check its server or disk, and that this user may "
			"read it",
			"cannot read a byte of the source '%s': %s", dir,
			strerror(-rc));
	else
		say(to, DOCTOR_OK, "", "%s of the source '%s'",
			rc ? "one byte" : "the list of files", dir);
}

/* Divide a URL into host and port. */
static bool url_host(const char *url, char host[256], char port[8])
{
	const char *at = strstr(url, "://"), *end, *user;
	bool tls = strncmp(url, "https", 5) == 0;

	if (!at)
		return false;
	at += 3;
	end = at + strcspn(at, "/?#");
	user = memrchr(at, '@', (size_t)(end - at));
	at = user ? user + 1 : at;
	(void)snprintf(port, 8, "%s", tls ? "443" : "80");
	if (*at == '[') {
		const char *close = memchr(at, ']', (size_t)(end - at));

		if (!close)
			return false;
		(void)snprintf(
			host, 256, "%.*s", (int)(close - at - 1), at + 1);
		at = close + 1;
	} else {
		size_t n = strcspn(at, ":/?#");

		(void)snprintf(host, 256, "%.*s", (int)n, at);
		at += n;
	}
	if (at < end && *at == ':')
		(void)snprintf(port, 8, "%.*s", (int)(end - at - 1), at + 1);
	return true;
}

/* Request the first byte. Without keys, a store may refuse this request, but
 * any answer shows that the store can be reached. */
static void probe_answer(int to, int fd, const char *host, const char *port)
{
	char request[512], answer[64];
	int n = snprintf(request, sizeof(request),
		"GET / HTTP/1.1\r\nHost: %s\r\nRange: bytes=0-0\r\n"
		"Connection: close\r\n\r\n",
		host);
	struct timeval limit = {.tv_sec = 2};

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (strcmp(port, "443") != 0 &&
		send(fd, request, (size_t)n, MSG_NOSIGNAL) == n &&
		recv(fd, answer, sizeof(answer), 0) <= 0)
		say(to, DOCTOR_BAD, "look at the server",
			"the source's host %s accepts connections, but does "
			"not answer",
			host);
	else
		say(to, DOCTOR_OK, "", "the source's host %s answers", host);
}

static void probe_host(int to, const char *url)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all, *at;
	char host[256], port[8];
	int rc, fd = -1;

	if (!url_host(url, host, port))
		return;
	rc = getaddrinfo(host, port, &hints, &all);
	if (rc != 0) {
		say(to, DOCTOR_BAD,
			"check the name, /etc/resolv.conf, and its name server",
			"the source's host %s has no address: %s", host,
			gai_strerror(rc));
		return;
	}
	for (at = all; at && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
			rc = errno;
			(void)close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(all);
	if (fd < 0) {
		say(to, DOCTOR_BAD,
			"check that the server runs, and the network",
			"cannot connect to the source's host %s, port %s: %s",
			host, port, strerror(rc));
		return;
	}
	probe_answer(to, fd, host, port);
	(void)close(fd);
}

static void probe_place(void *arg, int to)
{
	const struct doctor_place *p = arg;

	if (p->kind == PLACE_TIER)
		probe_tier(to, p->text);
	else if (p->kind == PLACE_SOURCE)
		probe_source(to, p->text);
	else
		probe_host(to, p->text);
}

static void take_answers(
	struct doctor *d, const struct doctor_place *p, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		const char *level = strsep(&line, "\t");
		const char *what = strsep(&line, "\t");

		if (what && line)
			doctor_find(d, (enum doctor_level)atoi(level),
				p->mountpoint, line, "%s", what);
	}
}

static int left_of(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) : 0;
}

/* Make findings of everything that a child writes until it ends. */
static void place_finish(struct doctor *d, const struct doctor_place *p,
	struct probe *probe, uint64_t until_ns)
{
	CLEANUP_FREE char *text = malloc(ANSWER_MAX);
	size_t len = 0;
	ssize_t n = -1;

	while (text && len < ANSWER_MAX - 1 &&
		probe_wait(probe, left_of(until_ns)) &&
		(n = read(probe->fd, text + len, ANSWER_MAX - 1 - len)) > 0) {
		len += (size_t)n;
		n = -1;
	}
	probe_end(probe);
	if (!text)
		return;
	text[len] = '\0';
	take_answers(d, p, text);
	if (n != 0)
		doctor_find(d, DOCTOR_BAD, p->mountpoint,
			p->kind == PLACE_TIER
				? "look which disk hangs"
				: "check the source's server and the network",
			"%s '%s' does not answer",
			p->kind == PLACE_TIER ? "cache" : "the source",
			p->text);
}

void doctor_places(struct doctor *d, struct doctor_place *place, size_t n)
{
	struct probe *probe = calloc(n + 1, sizeof(*probe));
	uint64_t until_ns = clock_now_ns() + PLACES_MS * NS_PER_MS;

	for (size_t i = 0; probe && i < n; i++)
		if (probe_start(&probe[i], probe_place, &place[i]) < 0)
			probe[i].pid = 0;
	for (size_t i = 0; probe && i < n; i++)
		if (probe[i].pid > 0)
			place_finish(d, &place[i], &probe[i], until_ns);
	free(probe);
}
