/* SPDX-License-Identifier: MIT */
/*
 * The logs of `refrain load --echo auto`: the log that is replayed and the log
 * that is written. A log has a line for each change of the echo factor. The
 * line is written before any state that depends on the change. A run that
 * resumes from a state drops the lines after that state, and appends to the
 * log. One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "load.h"

#define LINE_MAX_BYTES 32 /* maximum length of a line of refrain_echo_log() */
#define FILE_MAX ((size_t)64 << 20)
#define READ_BYTES ((size_t)4096)

/* Read the whole file and append a NUL. */
static int read_all(int fd, char **out)
{
	CLEANUP_FREE char *text = NULL;
	size_t used = 0, room = 0;
	ssize_t n = 1;

	while (n > 0) {
		if (used > FILE_MAX)
			return -EFBIG;
		if (ARRAY_ROOM(text, used + READ_BYTES, &room) < 0)
			return -ENOMEM;
		n = read(fd, text + used, room - used - 1);
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	text[used] = '\0';
	*out = text;
	text = NULL;
	return 0;
}

int load_echo_replay(struct load_echo *e, const char *path, struct error *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : read_all(fd, &e->replayed);

	if (rc < 0) {
		errno = -rc;
		return error_set(err, rc, "cannot read '%s': %m", path);
	}
	return 0;
}

/* Returns the offset after the first `lines` lines; -1 if the text has fewer.
 */
static off_t lines_end(const char *text, uint64_t lines)
{
	const char *at = text;

	for (; lines > 0; lines--) {
		at = strchr(at, '\n');
		if (!at)
			return -1;
		at++;
	}
	return at - text;
}

static int load_echo_cut(
	struct load_echo *e, int fd, uint64_t lines, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	int rc = read_all(fd, &text);
	off_t end = rc < 0 ? 0 : lines_end(text, lines);

	if (end < 0)
		return error_set(err, -EBADMSG,
			"'%s' has fewer than the %" PRIu64 " changes that "
			"were made before the state was saved; give the log "
			"that belongs to the state",
			e->path, lines);
	if (rc == 0 && (ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0))
		rc = -errno;
	errno = -rc;
	return rc < 0 ? error_set(err, rc, "cannot write '%s': %m", e->path)
		      : 0;
}

static uint64_t changes(struct refrain_loader *l)
{
	struct refrain_stats stats = {.size = sizeof(stats)};

	/* fails only in a child after fork() */
	(void)refrain_stats_get(l, &stats);
	return stats.echo_changes;
}

int load_echo_open(struct load_echo *e, const char *path, uint64_t before,
	struct error *err)
{
	CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	int rc;

	e->path = path;
	e->before = e->written = before;
	if (fd < 0)
		return error_set(err, -errno, "cannot write '%s': %m", path);
	rc = load_echo_cut(e, fd, before, err);
	if (rc < 0)
		return rc;
	e->log = fdopen(fd, "w");
	if (!e->log)
		return error_set(err, -ENOMEM, "%m");
	(void)steal_fd(&fd); /* the stream owns it now */
	return 0;
}

/* Append the changes that the loader has logged since the last call. */
static int load_echo_append(struct load_echo *e, const char *text)
{
	off_t from = lines_end(text, e->written - e->before);

	if (from < 0)
		return -EIO;
	for (const char *c = text + from; *c; c++)
		e->written += *c == '\n';
	return fputs(text + from, e->log) >= 0 && fflush(e->log) == 0 ? 0
								      : -errno;
}

int load_echo_used(
	struct load_echo *e, struct refrain_loader *l, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	uint64_t n = e->log ? changes(l) : 0;
	size_t room;
	int rc;

	if (!e->log || n == e->written)
		return 0;
	/* Allocate room for one more change, because the loader may log one
	 * before the call below. */
	room = (size_t)(n - e->before + 2) * LINE_MAX_BYTES;
	text = malloc(room);
	if (!text)
		return error_set(err, -ENOMEM, "%m");
	rc = refrain_echo_log(l, text, room);
	if (rc < 0)
		return error_set(err, rc, "%s", refrain_message(l));
	rc = load_echo_append(e, text);
	errno = -rc;
	return rc < 0 ? error_set(err, rc, "cannot write '%s': %m", e->path)
		      : 0;
}

void load_echo_close(struct load_echo *e)
{
	if (e->log)
		/* cannot lose data: the log was flushed after each change */
		(void)fclose(e->log);
	free(e->replayed);
}
