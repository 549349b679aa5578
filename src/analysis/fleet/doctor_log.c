/* SPDX-License-Identifier: MIT */
/*
 * Reads the ends of logs, each in a child, because a disk may hang. The words
 * of a daemon name the log, and its user has chosen them, so the log is read
 * with the rights of that user.
 */
#include "analysis/fleet/doctor_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define LOG_BYTES (64 << 10)
/* The time for all logs. */
#define LOGS_NS NS_PER_S

static int log_left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) : 0;
}

int doctor_take(struct probe *probe, struct array *to, uint64_t until_ns)
{
	char buf[4096];
	int rc = -ETIMEDOUT;

	while (rc < 0 && probe_wait(probe, log_left_ms(until_ns))) {
		ssize_t n = read(probe->fd, buf, sizeof(buf));
		char *at = n > 0 ? array_grow(to, (size_t)n) : NULL;

		if (at)
			memcpy(at, buf, (size_t)n);
		else if (n == 0)
			rc = 0;
		else
			break;
	}
	probe_end(probe);
	return rc;
}

/* Take the rights of the daemon's user. Only root can do that; any other user
 * has no rights but their own. */
static bool log_take_rights(const struct doctor_words *w)
{
	if (geteuid() != 0 || w->user == 0)
		return true;
	return setgroups(0, NULL) == 0 &&
		setresgid(w->group, w->group, w->group) == 0 &&
		setresuid(w->user, w->user, w->user) == 0;
}

/* May the words of this process name this file? */
static bool may_name(const struct doctor_words *w, const struct stat *st)
{
	return w->user == geteuid() || w->user == st->st_uid;
}

/* Write the end of a log to `to`. Runs in a child. */
static void write_log(void *arg, int to)
{
	const struct doctor_words *w = arg;
	const char *name = doctor_option(w, "log-file", 0);
	char path[PATH_MAX], buf[4096];
	CLEANUP_FD int fd = -1;
	struct stat st;
	size_t left = LOG_BYTES;
	ssize_t n;

	if (!doctor_path(w, name, path)) {
		(void)dprintf(to,
			"(--log-file '%s' is a relative path, and its "
			"directory is not known; mount with an absolute "
			"path)\n",
			name);
		return;
	}
	if (log_take_rights(w))
		/* without blocking, because a pipe might never have an end */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		(void)dprintf(to,
			"(the user of the mount cannot read '%s': %s)\n", path,
			strerror(errno));
		return;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !may_name(w, &st)) {
		(void)dprintf(
			to, "('%s' is not a file of the mount's user)\n", path);
		return;
	}
	if (st.st_size > LOG_BYTES)
		(void)lseek(fd, -LOG_BYTES, SEEK_END);
	while (left > 0 &&
		(n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf))) >
			0 &&
		write(to, buf, (size_t)n) == n)
		left -= (size_t)n;
}

/* Remove NULs, so that the log is a text. */
static void make_text(struct array *log)
{
	char *at = array_data(log), *end = at + array_bytes(log), *to = at;

	for (; at < end; at++)
		if (*at)
			*to++ = *at;
	log->bytes -= (size_t)(end - to);
}

static void finish_log(
	struct doctor_words *w, struct probe *probe, uint64_t until_ns)
{
	static const char hangs[] = "(the log does not answer; look which "
				    "file system hangs)\n";
	struct array log = {.data = NULL};
	int rc = doctor_take(probe, &log, until_ns);

	if (array_bytes(&log) > 0)
		make_text(&log);
	if (array_text(&log, hangs, rc < 0 ? strlen(hangs) : 0) < 0)
		array_release(&log);
	w->log = array_data(&log);
}

void doctor_logs(struct doctor *d)
{
	size_t n = fleet_count(d->fleet);
	struct probe *probe = calloc(n + 1, sizeof(*probe));
	uint64_t until_ns = clock_now_ns() + LOGS_NS;

	for (size_t i = 0; probe && i < n; i++)
		if (!d->chosen[i] || !d->words[i].words ||
			!doctor_option(&d->words[i], "log-file", 0) ||
			probe_start(&probe[i], write_log, &d->words[i]) < 0)
			probe[i].pid = 0;
	for (size_t i = 0; probe && i < n; i++)
		if (probe[i].pid > 0)
			finish_log(&d->words[i], &probe[i], until_ns);
	free(probe);
}
