/* SPDX-License-Identifier: MIT */
/* Makes a unit: one file of the target. Called by the threads of a run, each
 * with its own struct recode_worker. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/write.h"
#include "loader/recode/recode_impl.h"

/* A larger file is copied, whatever it is. */
#define JPEG_BYTES_MAX ((uint64_t)1 << 30)
#define COPY_BYTES ((size_t)1 << 20)

int recode_worker_init(
	struct recode_worker *w, struct recode_job *j, unsigned number)
{
	*w = (struct recode_worker){.j = j, .fd = -1};
	(void)snprintf(w->temporary, sizeof(w->temporary), "%s.%u.new",
		RECORD_FILE, number); /* always fits */
	return transcoder_new(&w->transcoder, &j->o->form);
}

void recode_worker_release(struct recode_worker *w)
{
	transcoder_free(w->transcoder);
	free(w->data);
}

void recode_unit_name(const struct recode_job *j, const struct recode_unit *u,
	char name[PATH_MAX])
{
	if (j->o->shard_bytes)
		(void)snprintf(
			name, PATH_MAX, "%06zu.tar", (size_t)(u - j->units));
	else
		(void)snprintf(name, PATH_MAX, "%s",
			recode_list_path(&j->list, u->first));
}

/* -- Reading --------------------------------------------------------------- */

/* Open a file of the list, which must be as it was listed. Returns the
 * descriptor, or -errno with a message. */
static int open_listed(const struct recode_job *j, size_t i, struct error *err)
{
	const struct recode_file *f = recode_list_file(&j->list, i);
	const char *path = recode_list_path(&j->list, i);
	int fd = openat(j->source_fd, path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		int rc = error_set(err, -errno, "cannot read '%s/%s': %m",
			j->o->source, path);
		if (fd >= 0)
			(void)close(fd); /* nothing was written */
		return rc;
	}
	if ((uint64_t)st.st_size == f->bytes &&
		(int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec ==
			f->mtime_ns)
		return fd;
	(void)close(fd); /* nothing was written */
	return error_set(err, -EAGAIN,
		"'%s/%s' has changed since it was listed; run the command "
		"again",
		j->o->source, path);
}

/* Read exactly `bytes` bytes. Returns 0, -errno, or -EAGAIN at an early end. */
static int read_exactly(int fd, uint8_t *to, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = read(fd, to, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EAGAIN;
		to += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int reserve_data(struct recode_worker *w, size_t bytes)
{
	if (bytes <= w->room)
		return 0;
	free(w->data);
	w->data = malloc(bytes);
	w->room = w->data ? bytes : 0;
	return w->data ? 0 : -ENOMEM;
}

int recode_read(struct recode_worker *w, size_t file, struct error *err)
{
	const struct recode_file *f = recode_list_file(&w->j->list, file);
	CLEANUP_FD int fd = open_listed(w->j, file, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = reserve_data(w, f->bytes);
	if (rc == 0)
		rc = read_exactly(fd, w->data, f->bytes);
	return rc == 0
		? 0
		: error_set(err, rc, "cannot read '%s/%s': %m", w->j->o->source,
			  recode_list_path(&w->j->list, file));
}

/* -- Writing --------------------------------------------------------------- */

static int write_failed(
	const struct recode_worker *w, int rc, struct error *err)
{
	return error_set(err, rc,
		"cannot write to '%s': %m; run the command again to continue",
		w->j->o->target);
}

/* Write the contents of a file, as a file or as a member of a shard. */
static int write_contents(struct recode_worker *w, size_t file,
	const uint8_t *data, size_t bytes, struct error *err)
{
	const struct recode_file *f = recode_list_file(&w->j->list, file);
	bool tar = w->j->o->shard_bytes;
	int rc = 0;

	if (tar)
		rc = tar_put_header(w->fd, recode_list_path(&w->j->list, file),
			bytes, f->mtime_ns / 1000000000, &w->written);
	if (rc == 0)
		rc = write_all(w->fd, data, bytes);
	w->written += bytes;
	if (rc == 0 && tar)
		rc = tar_put_padding(w->fd, bytes, &w->written);
	return rc == 0 ? 0 : write_failed(w, rc, err);
}

/* Copy a file that is too large for memory. */
static int copy_large(struct recode_worker *w, size_t file, struct error *err)
{
	const struct recode_file *f = recode_list_file(&w->j->list, file);
	CLEANUP_FD int fd = open_listed(w->j, file, err);
	bool tar = w->j->o->shard_bytes;
	int rc = fd < 0 ? fd : reserve_data(w, COPY_BYTES);

	if (rc == 0 && tar)
		rc = tar_put_header(w->fd, recode_list_path(&w->j->list, file),
			f->bytes, f->mtime_ns / 1000000000, &w->written);
	for (uint64_t at = 0; rc == 0 && at < f->bytes; at += COPY_BYTES) {
		size_t n = f->bytes - at < COPY_BYTES ? (size_t)(f->bytes - at)
						      : COPY_BYTES;

		rc = read_exactly(fd, w->data, n);
		if (rc == 0)
			rc = write_all(w->fd, w->data, n);
		w->written += n;
	}
	if (rc == 0 && tar)
		rc = tar_put_padding(w->fd, f->bytes, &w->written);
	return rc == 0 || err->msg[0] ? rc : write_failed(w, rc, err);
}

/* -- One file -------------------------------------------------------------- */

static void note_odd(struct recode_job *j, size_t file, const struct error *why)
{
	LOCK_SCOPE(&j->lock);
	if (!j->first_odd[0])
		(void)snprintf(j->first_odd, sizeof(j->first_odd), "%s: %s",
			recode_list_path(&j->list, file), why->msg);
}

static int refuse_again(const struct recode_worker *w, size_t file,
	const char *lossy, struct error *err)
{
	return error_set(err, -EEXIST,
		"'%s/%s' was re-coded before (%s), and would lose again; "
		"re-code the originals, or say --again",
		w->j->o->source, recode_list_path(&w->j->list, file), lossy);
}

bool recode_gains(const struct transcode_options *form,
	const struct transcode_info *info, size_t from, size_t to)
{
	if (form->form == TRANSCODE_RESTART)
		return true;
	if (form->form == TRANSCODE_PROGRESSIVE)
		return !info->progressive;
	if (form->form == TRANSCODE_BASELINE && info->slow)
		return true;
	return (double)to <= (double)from * (1 - GAIN_LEAST);
}

/*
 * Re-code the bytes of a file in w->data. Returns 1 with the result, 0 if the
 * file stays as it is, or -errno with a message.
 */
static int recode_bytes(struct recode_worker *w, size_t file,
	struct recode_counts *counts, const uint8_t **out, size_t *bytes,
	struct error *err)
{
	const struct recode_file *f = recode_list_file(&w->j->list, file);
	const struct transcode_options *form = &w->j->o->form;
	char mark[TRANSCODE_MARK_MAX];
	struct transcode_info info;
	struct error why = {""};
	int rc = transcode_probe(w->transcoder, w->data, f->bytes, &info, &why);

	if (rc == 0 && form->form == TRANSCODE_QUALITY && info.lossy[0] &&
		!w->j->o->again)
		return refuse_again(w, file, info.lossy, err);
	(void)snprintf(mark, sizeof(mark), "%s source=%016" PRIx64, w->j->mark,
		hash64(w->data, f->bytes, 0));
	if (rc == 0)
		rc = transcode(w->transcoder, w->data, f->bytes, mark, out,
			bytes, &why);
	if (rc == -ENOMEM)
		return error_set(err, rc, "%m");
	if (rc < 0) {
		counts->odd++;
		note_odd(w->j, file, &why);
		return 0;
	}
	rc = recode_gains(form, &info, f->bytes, *bytes);
	counts->recoded += (uint64_t)rc;
	counts->kept += !rc;
	return rc;
}

static int make_file(struct recode_worker *w, size_t file,
	struct recode_unit *u, struct error *err)
{
	struct recode_counts *counts = &u->counts;
	const struct recode_file *f = recode_list_file(&w->j->list, file);
	const uint8_t *out;
	size_t bytes;
	int rc;

	if (f->bytes > JPEG_BYTES_MAX) {
		counts->other++;
		return copy_large(w, file, err);
	}
	rc = recode_read(w, file, err);
	if (rc < 0)
		return rc;
	if (transcode_is_jpeg(w->data, f->bytes)) {
		rc = recode_bytes(w, file, counts, &out, &bytes, err);
		if (rc < 0)
			return rc;
	} else {
		counts->other++;
	}
	if (!rc) {
		out = w->data;
		bytes = f->bytes;
	}
	if (w->j->o->form.form == TRANSCODE_PROGRESSIVE && u->count == 1)
		jpeg_levels(out, bytes, u->level);
	return write_contents(w, file, out, bytes, err);
}

/* -- A unit ---------------------------------------------------------------- */

/* A unit is as new as the newest of its files. */
static int set_time(const struct recode_worker *w, const struct recode_unit *u)
{
	int64_t ns = INT64_MIN;
	struct timespec times[2];

	for (size_t i = u->first; i < u->first + u->count; i++)
		if (recode_list_file(&w->j->list, i)->mtime_ns > ns)
			ns = recode_list_file(&w->j->list, i)->mtime_ns;
	times[1].tv_sec = ns / 1000000000 - (ns % 1000000000 < 0);
	times[1].tv_nsec = ns - times[1].tv_sec * 1000000000;
	times[0] = times[1];
	return futimens(w->fd, times) < 0 ? -errno : 0;
}

static int make_contents(
	struct recode_worker *w, struct recode_unit *u, struct error *err)
{
	int rc = 0;

	u->counts = (struct recode_counts){0};
	memset(u->level, 0, sizeof(u->level));
	w->written = 0;
	for (size_t i = u->first; rc == 0 && i < u->first + u->count; i++) {
		if (atomic_load_explicit(&w->j->stop, memory_order_relaxed))
			return -ECANCELED;
		rc = make_file(w, i, u, err);
		if (rc == 0) {
			(void)atomic_fetch_add_explicit(
				&w->j->files, 1, memory_order_relaxed);
			(void)atomic_fetch_add_explicit(&w->j->bytes,
				recode_list_file(&w->j->list, i)->bytes,
				memory_order_relaxed);
		}
	}
	if (rc == 0 && w->j->o->shard_bytes) {
		rc = tar_put_end(w->fd, &w->written);
		if (rc < 0)
			return write_failed(w, rc, err);
	}
	u->counts.bytes = w->written;
	return rc;
}

int recode_unit_make(
	struct recode_worker *w, struct recode_unit *u, struct error *err)
{
	int target = w->j->target_fd, rc;
	char name[PATH_MAX];

	w->fd = openat(target, w->temporary,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (w->fd < 0)
		return write_failed(w, -errno, err);
	rc = make_contents(w, u, err);
	if (rc == 0) {
		rc = set_time(w, u);
		recode_unit_name(w->j, u, name);
		if (rc == 0 && renameat(target, w->temporary, target, name) < 0)
			rc = -errno;
		if (rc < 0)
			(void)write_failed(w, rc, err);
	}
	if (close(w->fd) < 0 && rc == 0)
		rc = write_failed(w, -errno, err);
	if (rc < 0)
		(void)unlinkat(target, w->temporary, 0); /* nobody needs it */
	return rc;
}
