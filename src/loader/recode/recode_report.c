/* SPDX-License-Identifier: MIT */
/* The report of a run, recode.json, and the sample that it measures. Called by
 * the thread of recode_run(). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/write.h"
#include "loader/image/likeness.h"
#include "loader/recode/recode_impl.h"

/* Images that are compared with their originals; about 3 s. */
#define SAMPLE_IMAGES 200u

int recode_write_file(struct recode_job *j, const char *name, const char *text,
	size_t bytes, struct error *err)
{
	CLEANUP_FD int fd = -1;
	char fresh[64];
	int rc = 0;

	(void)snprintf(fresh, sizeof(fresh), "%s.new", RECORD_FILE);
	fd = openat(j->target_fd, fresh,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		rc = -errno;
	if (rc == 0)
		rc = write_all(fd, text, bytes);
	if (rc == 0 &&
		(fsync(fd) < 0 ||
			renameat(j->target_fd, fresh, j->target_fd, name) < 0))
		rc = -errno;
	return rc == 0 ? 0
		       : error_set(err, rc, "cannot write '%s/%s': %m",
				 j->o->target, name);
}

/* -- The sample ------------------------------------------------------------ */

struct likeness_sample {
	struct likeness values[SAMPLE_IMAGES];
	unsigned count;
};

static int by_psnr(const void *a, const void *b)
{
	double one = ((const struct likeness *)a)->psnr;
	double other = ((const struct likeness *)b)->psnr;

	return one < other ? -1 : one > other;
}

static int by_ssim(const void *a, const void *b)
{
	double one = ((const struct likeness *)a)->ssim;
	double other = ((const struct likeness *)b)->ssim;

	return one < other ? -1 : one > other;
}

static void summarise_sample(
	struct likeness_sample *s, struct recode_sample *out)
{
	unsigned worst = s->count / 100 ? s->count / 100 : 1;

	*out = (struct recode_sample){.images = s->count};
	if (!s->count)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		out->psnr += s->values[i].psnr / s->count;
		out->ssim += s->values[i].ssim / s->count;
	}
	qsort(s->values, s->count, sizeof(s->values[0]), by_psnr);
	for (unsigned i = 0; i < worst; i++)
		out->psnr_worst += s->values[i].psnr / worst;
	qsort(s->values, s->count, sizeof(s->values[0]), by_ssim);
	for (unsigned i = 0; i < worst; i++)
		out->ssim_worst += s->values[i].ssim / worst;
}

/* Compare one file with what it becomes. What is copied does not count. */
static int measure_one(struct recode_worker *w, struct likeness_meter *m,
	size_t file, struct likeness_sample *s, struct error *err)
{
	size_t bytes = recode_list_file(&w->j->list, file)->bytes, out_bytes;
	struct error ignored;
	const uint8_t *out;
	int rc;

	if (bytes > UINT32_MAX)
		return 0;
	rc = recode_read(w, file, err);
	if (rc < 0)
		return rc;
	if (!transcode_is_jpeg(w->data, bytes) ||
		transcode(w->transcoder, w->data, bytes, "", &out, &out_bytes,
			&ignored) < 0 ||
		(double)out_bytes > (double)bytes * (1 - GAIN_LEAST))
		return 0;
	if (likeness_of_files(m, w->data, bytes, out, out_bytes,
		    &s->values[s->count], &ignored) == 0)
		s->count++;
	return 0;
}

int recode_measure(
	struct recode_job *j, struct recode_sample *out, struct error *err)
{
	size_t n = recode_list_count(&j->list), step = n / SAMPLE_IMAGES;
	struct likeness_sample *s = calloc(1, sizeof(*s));
	struct likeness_meter *m = NULL;
	struct recode_worker w = {0};
	int rc = s ? recode_worker_init(&w, j, 0) : -ENOMEM;

	if (rc == 0)
		rc = likeness_meter_new(&m);
	if (rc < 0)
		(void)error_set(err, rc, "%m");
	if (step == 0)
		step = 1;
	for (size_t i = 0; rc == 0 && i < n && s->count < SAMPLE_IMAGES;
		i += step)
		rc = measure_one(&w, m, i, s, err);
	if (rc == 0)
		summarise_sample(s, out);
	likeness_meter_free(m);
	recode_worker_release(&w);
	free(s);
	return rc;
}

/* -- recode.index ---------------------------------------------------------- */

/* Write a path or a part of it, as an index has it. */
static void print_escaped(FILE *to, const char *path, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char c = path[i];

		if (c == '\t' || c == '\n' || c == '\\') {
			(void)fputc('\\', to);
			c = c == '\t' ? 't' : c == '\n' ? 'n' : '\\';
		}
		(void)fputc(c, to);
	}
}

/* Without times and tags, so that the index is also right for a copy of the
 * target, such as a bucket. */
static void print_index(FILE *to, const struct recode_job *j)
{
	(void)fputs("# refrain index 3: path, size, mtime, tag, drop1, drop2, "
		    "label\n",
		to);
	for (size_t i = 0; i < j->unit_count; i++) {
		const struct recode_unit *u = &j->units[i];
		const char *path = recode_list_path(&j->list, u->first);
		const char *slash = strchr(path, '/');

		print_escaped(to, path, strlen(path));
		(void)fprintf(to, "\t%" PRIu64 "\t\t", u->counts.bytes);
		for (unsigned k = 0; k < JPEG_DROP_BITS_MAX; k++) {
			(void)fputc('\t', to);
			if (u->level[k])
				(void)fprintf(to, "%" PRIu64, u->level[k]);
		}
		(void)fputc('\t', to);
		print_escaped(to, path, slash ? (size_t)(slash - path) : 0);
		(void)fputc('\n', to);
	}
}

int recode_index(struct recode_job *j, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return error_set(err, -ENOMEM, "%m");
	print_index(to, j);
	if (fclose(to) != 0)
		return error_set(err, -ENOMEM, "%m");
	return recode_write_file(j, LEVELS_INDEX, text, bytes, err);
}

/* -- recode.json ----------------------------------------------------------- */

static void print_sample(FILE *to, const struct recode_sample *s)
{
	if (!s->images)
		return;
	(void)fprintf(to,
		",\n  \"sample\": {\"images\": %u, \"psnr_db\": %.2f, "
		"\"psnr_worst_db\": %.2f, \"ssim\": %.4f, "
		"\"ssim_worst\": %.4f}",
		s->images, s->psnr, s->psnr_worst, s->ssim, s->ssim_worst);
}

static void print_report(
	FILE *to, const struct recode_job *j, const struct recode_result *r)
{
	const struct recode_counts *c = &r->counts;

	(void)fprintf(to,
		"{\n  \"refrain_recode\": 1,\n  \"rendition\": \"%s\",\n"
		"  \"settings\": \"%s\",\n  \"library\": \"%s\",\n"
		"  \"files\": %zu,\n  \"recoded\": %" PRIu64
		",\n  \"kept\": %" PRIu64 ",\n  \"odd\": %" PRIu64
		",\n  \"other\": %" PRIu64 ",\n  \"source_bytes\": %" PRIu64
		",\n  \"bytes\": %" PRIu64,
		r->rendition, j->settings, transcode_library(),
		recode_list_count(&j->list), c->recoded, c->kept, c->odd,
		c->other, r->source_bytes, c->bytes);
	print_sample(to, &r->sample);
	(void)fputs("\n}\n", to);
}

int recode_report(
	struct recode_job *j, const struct recode_result *r, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return error_set(err, -ENOMEM, "%m");
	print_report(to, j, r);
	if (fclose(to) != 0)
		return error_set(err, -ENOMEM, "%m");
	return recode_write_file(j, RENDITION_FILE, text, bytes, err);
}
