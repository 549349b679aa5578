/* SPDX-License-Identifier: MIT */
/*
 * The two files of `refrain load --state FILE --trace FILE`. A consumed batch
 * is first appended to the trace. Then a rename replaces the previous state by
 * the new one, which has the length of the trace. So the state is complete at
 * any moment, and the trace has at least the batches before the state. A run
 * that resumes cuts the trace to that length; the batches of the removed lines
 * are served again.
 *
 * The state: "rfrload" and a NUL, then little endian: 8 bytes length of the
 * trace, 8 bytes length n of the loader's state, those n bytes, and XXH3-64 of
 * all bytes before it (doc/formats.md).
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "load.h"

#define MAGIC "rfrload"
#define HEAD_BYTES 24
#define FILE_MAX (HEAD_BYTES + REFRAIN_STATE_MAX + 8)

static void load_state_put64(unsigned char *to, uint64_t v)
{
	v = htole64(v);
	memcpy(to, &v, sizeof(v));
}

static uint64_t get64(const unsigned char *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return le64toh(v);
}

static int load_state_parse(struct load_state *s, const unsigned char *file,
	size_t size, struct error *err)
{
	uint64_t n = size >= HEAD_BYTES + 8 ? get64(file + 16) : 0;

	if (!n || n > REFRAIN_STATE_MAX || size != HEAD_BYTES + n + 8 ||
		memcmp(file, MAGIC, sizeof(MAGIC)) != 0 ||
		get64(file + HEAD_BYTES + n) != hash64(file, HEAD_BYTES + n, 0))
		return error_set(err, -EBADMSG,
			"'%s' is damaged or was not written by --state; remove "
			"it to start again",
			s->path);
	s->trace_bytes = get64(file + 8);
	s->loader_bytes = n;
	memcpy(s->loader, file + HEAD_BYTES, n);
	return 0;
}

/* Read the state. Also succeeds if the file does not exist, because no state
 * was saved yet. */
static int load_state_read_state(struct load_state *s, struct error *err)
{
	unsigned char file[FILE_MAX + 1];
	CLEANUP_FD int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : read(fd, file, sizeof(file));
	if (n < 0)
		return error_set(err, -errno, "cannot read '%s': %m", s->path);
	return load_state_parse(s, file, (size_t)n, err);
}

static int open_trace(struct load_state *s, struct error *err)
{
	CLEANUP_FD int fd =
		open(s->trace_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (end >= 0 && (uint64_t)end < s->trace_bytes)
		return error_set(err, -EBADMSG,
			"'%s' is shorter than it was when '%s' was saved; give "
			"the trace that belongs to it",
			s->trace_path, s->path);
	if (end < 0 || ftruncate(fd, (off_t)s->trace_bytes) < 0 ||
		lseek(fd, 0, SEEK_END) < 0)
		return error_set(
			err, -errno, "cannot write '%s': %m", s->trace_path);
	s->trace = fdopen(fd, "w");
	if (!s->trace)
		return error_set(err, -ENOMEM, "%m");
	(void)steal_fd(&fd); /* the stream owns it now */
	return 0;
}

int load_state_open(struct load_state *s, const char *path,
	const char *trace_path, struct error *err)
{
	int rc = 0;

	s->path = path;
	s->trace_path = trace_path;
	if (path && asprintf(&s->fresh_path, "%s.new", path) < 0) {
		s->fresh_path = NULL;
		return error_set(err, -ENOMEM, "%m");
	}
	if (path)
		rc = load_state_read_state(s, err);
	if (rc == 0 && trace_path)
		rc = open_trace(s, err);
	return rc;
}

void load_state_close(struct load_state *s)
{
	if (s->trace)
		/* cannot lose data: the trace was flushed after each batch */
		(void)fclose(s->trace);
	free(s->fresh_path);
}

static int trace_batch(struct load_state *s, const struct refrain_batch *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		int n = fprintf(s->trace,
			"%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%016" PRIx64
			"\n",
			b->step, b->indices[i], b->echoes[i], b->seeds[i]);

		if (n < 0)
			return -errno;
		s->trace_bytes += (uint64_t)n;
	}
	return fflush(s->trace) == 0 ? 0 : -errno;
}

static int load_state_write_file(
	const char *path, const unsigned char *data, size_t n)
{
	CLEANUP_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ssize_t done = fd < 0 ? -1 : write(fd, data, n);

	if (done < 0)
		return -errno;
	if ((size_t)done != n)
		return -ENOSPC;
	return close(steal_fd(&fd)) == 0 ? 0 : -errno;
}

/* Save the state. The file is not synced: if the machine crashes, the previous
 * state remains. */
static int load_state_save(
	struct load_state *s, struct refrain_loader *l, struct error *err)
{
	unsigned char file[FILE_MAX];
	int n = refrain_save(l, file + HEAD_BYTES, REFRAIN_STATE_MAX);
	int rc;

	if (n < 0)
		return error_set(err, n, "%s", refrain_message(l));
	rc = load_echo_used(s->echo, l, err);
	if (rc < 0)
		return rc;
	memcpy(file, MAGIC, sizeof(MAGIC));
	load_state_put64(file + 8, s->trace_bytes);
	load_state_put64(file + 16, (uint64_t)n);
	load_state_put64(
		file + HEAD_BYTES + n, hash64(file, HEAD_BYTES + (size_t)n, 0));
	rc = load_state_write_file(
		s->fresh_path, file, HEAD_BYTES + (size_t)n + 8);
	if (rc == 0 && rename(s->fresh_path, s->path) < 0)
		rc = -errno;
	if (rc < 0)
		return error_set(err, rc, "cannot write '%s': %m", s->path);
	return 0;
}

int load_state_used(struct load_state *s, struct refrain_loader *l,
	const struct refrain_batch *b, struct error *err)
{
	int rc = s->trace ? trace_batch(s, b) : 0;

	if (rc < 0)
		return error_set(
			err, rc, "cannot write '%s': %m", s->trace_path);
	return s->path ? load_state_save(s, l, err)
		       : load_echo_used(s->echo, l, err);
}
