/* SPDX-License-Identifier: MIT */
/* Tries forms on a sample of a dataset; see recode.h. Called by one thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/format/jpeg_levels.h"
#include "loader/image/augment.h"
#include "loader/image/decode.h"
#include "loader/image/likeness.h"
#include "loader/recode/recode_impl.h"
#include "refrain/loader.h"

#define TRIAL_IMAGES_MAX 10000u
/* Crops that are decoded of each image, each twice */
#define TRIAL_CROPS 2u
/* A picture of the page has at most this many bytes, if there is one. */
#define PICTURE_BYTES ((size_t)96 << 10)

/* The forms; see struct recode_trial. drop: bits, as in jpeg_levels.h */
static const struct trial_form {
	const char *name, *options;
	struct transcode_options form;
	unsigned drop;
} trial_forms[TRIAL_ROWS - 1] = {
	{"baseline, exact", "recode --baseline", {.form = TRANSCODE_BASELINE},
		0},
	{"progressive, exact", "recode --progressive",
		{.form = TRANSCODE_PROGRESSIVE}, 0},
	{"progressive, 1 bit less", "mount --drop-bits 1",
		{.form = TRANSCODE_PROGRESSIVE}, 1},
	{"progressive, 2 bits less", "mount --drop-bits 2",
		{.form = TRANSCODE_PROGRESSIVE}, 2},
	{"quality 95", "recode --quality 95",
		{.form = TRANSCODE_QUALITY, .quality = 95}, 0},
	{"quality 90", "recode --quality 90",
		{.form = TRANSCODE_QUALITY, .quality = 90}, 0},
	{"quality 80", "recode --quality 80",
		{.form = TRANSCODE_QUALITY, .quality = 80}, 0},
	{"quality 70", "recode --quality 70",
		{.form = TRANSCODE_QUALITY, .quality = 70}, 0},
	{"quality 60", "recode --quality 60",
		{.form = TRANSCODE_QUALITY, .quality = 60}, 0},
	{"quality 90, size 384", "recode --quality 90 --size 384",
		{.form = TRANSCODE_QUALITY, .quality = 90, .shorter = 384}, 0},
	{"quality 90, size 256", "recode --quality 90 --size 256",
		{.form = TRANSCODE_QUALITY, .quality = 90, .shorter = 256}, 0},
};

struct trial_file {
	const uint8_t *data;
	size_t bytes;
};

/* Sums over the sample. */
struct trial_sums {
	double bytes, decode_ns, psnr, ssim;
	double psnrs[TRIAL_IMAGES_MAX];
};

struct trial_run {
	struct recode_job job; /* only the list and the source */
	struct recode_options options;
	struct recode_worker reader; /* reads the originals */
	struct recode_trials *out;
	struct transcoder *coder[TRIAL_ROWS - 1];
	struct likeness_meter *meter;
	struct decoder *decoder;
	struct array pixels; /* room for a crop */
	struct trial_sums sums[TRIAL_ROWS];
	uint8_t *prefix; /* a prefix with its end; only grows */
	size_t prefix_room;
	unsigned pictures;
	uint64_t done_bytes; /* of the sample's files */
};

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -- Decoding -------------------------------------------------------------- */

static int decode_crop(struct trial_run *t, const struct trial_file *f,
	uint64_t seed, struct error *err)
{
	const struct augment_config c = {
		.height = LIKENESS_SIDE,
		.width = LIKENESS_SIDE,
		.type = REFRAIN_U8,
		.layout = REFRAIN_NHWC,
		.augment = REFRAIN_AUGMENT_TRAIN,
		.area_min = 0.08F,
		.area_max = 1,
		.aspect_min = 3 / 4.F,
		.aspect_max = 4 / 3.F,
		.scale = SCALE_EXACT,
	};
	struct image_info info;
	struct image image;
	struct crop crop;
	size_t need;
	int rc = decode_probe(t->decoder, f->data, f->bytes, &info, err);

	if (rc < 0)
		return rc;
	crop_of(&c, seed, info.width, info.height, &crop);
	need = decode_layout(&info, &crop.box, 1, &image);
	if (need > array_bytes(&t->pixels) &&
		!array_grow(&t->pixels, need - array_bytes(&t->pixels)))
		return error_set(err, -ENOMEM, "%m");
	image.data = array_data(&t->pixels);
	return decode_region(t->decoder, f->data, f->bytes, &info, &image, err);
}

/* Add the time of a crop: the mean over crops, each the better of two. */
static int time_crops(struct trial_run *t, unsigned row,
	const struct trial_file *f, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < TRIAL_CROPS; i++) {
		uint64_t best = UINT64_MAX;

		for (unsigned again = 0; rc == 0 && again < 2; again++) {
			uint64_t start = thread_cpu_ns();

			rc = decode_crop(t, f, i, err);
			start = thread_cpu_ns() - start;
			if (start < best)
				best = start;
		}
		t->sums[row].decode_ns += (double)best / TRIAL_CROPS;
	}
	return rc;
}

/* -- One image ------------------------------------------------------------- */

/* Cut the file after the wanted scans. It stays whole if it has no such end. */
static int trial_cut(struct trial_run *t, unsigned drop, struct trial_file *f)
{
	uint64_t ends[JPEG_DROP_BITS_MAX], end;

	jpeg_levels(f->data, f->bytes, ends);
	end = ends[drop - 1];
	if (!end)
		return 0;
	if (end + 2 > t->prefix_room) {
		free(t->prefix);
		t->prefix_room = end + 2;
		t->prefix = malloc(t->prefix_room);
		if (!t->prefix) {
			t->prefix_room = 0;
			return -ENOMEM;
		}
	}
	memcpy(t->prefix, f->data, end);
	memcpy(t->prefix + end, jpeg_end_marker, 2);
	*f = (struct trial_file){t->prefix, end + 2};
	return 0;
}

/* Find what a form makes of a file: perhaps the file itself. */
static int try_form(struct trial_run *t, unsigned form,
	const struct transcode_info *info, struct trial_file *f,
	struct error *err)
{
	const struct trial_form *to = &trial_forms[form];
	struct trial_file made;
	int rc = transcode(t->coder[form], f->data, f->bytes, "", &made.data,
		&made.bytes, err);

	if (rc == -ENOMEM)
		return rc;
	if (rc == 0 && recode_gains(&to->form, info, f->bytes, made.bytes))
		*f = made;
	return to->drop ? trial_cut(t, to->drop, f) : 0;
}

static int keep_picture(
	struct trial_run *t, unsigned row, const struct trial_file *f)
{
	uint8_t *copy = malloc(f->bytes);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, f->data, f->bytes);
	t->out->row[row].picture[t->pictures].data = copy;
	t->out->row[row].picture[t->pictures].bytes = f->bytes;
	return 0;
}

static int trial_add_row(struct trial_run *t, unsigned row,
	const struct trial_file *original, const struct trial_file *f,
	bool picture, struct error *err)
{
	struct trial_sums *s = &t->sums[row];
	struct likeness l;
	int rc = time_crops(t, row, f, err);

	if (rc == 0)
		rc = likeness_of_files(t->meter, original->data,
			original->bytes, f->data, f->bytes, &l, err);
	if (rc < 0)
		return rc;
	s->bytes += (double)f->bytes;
	s->psnr += l.psnr;
	s->ssim += l.ssim;
	s->psnrs[t->out->images] = l.psnr;
	return picture ? keep_picture(t, row, f) : 0;
}

/* Pictures for the page: spread over the sample, and not too large. */
static bool is_picture(
	const struct trial_run *t, size_t i, size_t images, size_t bytes)
{
	return t->pictures < TRIAL_PICTURES &&
		i * TRIAL_PICTURES >= t->pictures * images &&
		bytes <= PICTURE_BYTES;
}

static int try_image(struct trial_run *t, const struct trial_file *original,
	const struct transcode_info *info, bool picture, struct error *err)
{
	int rc = trial_add_row(t, 0, original, original, picture, err);

	for (unsigned i = 0; rc == 0 && i < TRIAL_ROWS - 1; i++) {
		struct trial_file f = *original;

		rc = try_form(t, i, info, &f, err);
		if (rc == 0)
			rc = trial_add_row(
				t, i + 1, original, &f, picture, err);
	}
	if (rc < 0)
		return error_wrap(err, rc, "cannot try a file");
	t->out->images++;
	t->out->progressive += info->progressive;
	t->pictures += picture;
	return 0;
}

/* Try one file of the list, if it is a JPEG that can be decoded. */
static int try_file(struct trial_run *t, size_t file, size_t i, size_t images,
	struct error *err)
{
	size_t bytes = recode_list_file(&t->job.list, file)->bytes;
	struct trial_file original;
	struct transcode_info info;
	struct error ignored;
	int rc;

	if (bytes > UINT32_MAX)
		return 0;
	rc = recode_read(&t->reader, file, err);
	if (rc < 0)
		return rc;
	original = (struct trial_file){t->reader.data, bytes};
	t->done_bytes += bytes;
	if (!transcode_is_jpeg(original.data, bytes) ||
		transcode_probe(t->reader.transcoder, original.data, bytes,
			&info, &ignored) < 0 ||
		decode_crop(t, &original, 0, &ignored) < 0)
		return 0;
	return try_image(
		t, &original, &info, is_picture(t, i, images, bytes), err);
}

/* -- All images ------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static void summarise_rows(struct trial_run *t)
{
	unsigned n = t->out->images, tenth = n / 10 ? n / 10 : 1;

	for (unsigned i = 0; i < TRIAL_ROWS; i++) {
		struct recode_trial *r = &t->out->row[i];
		struct trial_sums *s = &t->sums[i];

		r->name = i ? trial_forms[i - 1].name : "original";
		r->options = i ? trial_forms[i - 1].options : "";
		r->bytes = s->bytes / t->sums[0].bytes;
		r->decode_us = s->decode_ns / n / 1000;
		r->psnr = s->psnr / n;
		r->ssim = s->ssim / n;
		qsort(s->psnrs, n, sizeof(s->psnrs[0]), ascending);
		r->psnr_worst = 0;
		for (unsigned k = 0; k < tenth; k++)
			r->psnr_worst += s->psnrs[k] / tenth;
	}
}

static int trial_init(
	struct trial_run *t, const char *source, struct error *err)
{
	const struct decode_limits limits = {
		.max_pixels = 200000000,
		.max_memory_bytes = UINT64_MAX,
		.max_scans = 500,
	};
	int rc;

	t->options.source = source;
	t->job.o = &t->options;
	t->job.source_fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->job.source_fd < 0)
		return error_set(err, -errno, "cannot open '%s': %m", source);
	rc = recode_worker_init(&t->reader, &t->job, 0);
	for (unsigned i = 0; rc == 0 && i < TRIAL_ROWS - 1; i++)
		rc = transcoder_new(&t->coder[i], &trial_forms[i].form);
	if (rc == 0)
		rc = likeness_meter_new(&t->meter);
	if (rc == 0)
		rc = decoder_new(&t->decoder, &limits);
	if (rc < 0)
		return error_set(err, rc, "%m");
	return recode_list_make(&t->job.list, source, err);
}

static void trial_release(struct trial_run *t)
{
	for (unsigned i = 0; i < TRIAL_ROWS - 1; i++)
		transcoder_free(t->coder[i]);
	likeness_meter_free(t->meter);
	decoder_free(t->decoder);
	array_release(&t->pixels);
	free(t->prefix);
	recode_worker_release(&t->reader);
	recode_list_release(&t->job.list);
	if (t->job.source_fd >= 0)
		(void)close(t->job.source_fd); /* a directory */
	free(t);
}

int recode_try(struct recode_trials *out, const char *source, unsigned images,
	void (*show)(void *arg, uint64_t files, uint64_t bytes,
		uint64_t total_bytes),
	void *arg, struct error *err)
{
	struct trial_run *t = calloc(1, sizeof(*t));
	uint64_t total_bytes = 0;
	size_t n;
	int rc;

	*out = (struct recode_trials){0};
	if (!t)
		return error_set(err, -ENOMEM, "%m");
	t->out = out;
	if (images > TRIAL_IMAGES_MAX)
		images = TRIAL_IMAGES_MAX;
	rc = trial_init(t, source, err);
	n = recode_list_count(&t->job.list);
	if (images > n)
		images = (unsigned)n;
	for (unsigned i = 0; i < images; i++)
		total_bytes +=
			recode_list_file(&t->job.list, i * n / images)->bytes;
	for (unsigned i = 0; rc == 0 && i < images; i++) {
		rc = try_file(t, i * n / images, i, images, err);
		if (show)
			show(arg, i + 1, t->done_bytes, total_bytes);
	}
	if (rc == 0 && out->images == 0)
		rc = error_set(err, -ENODATA,
			"none of %u files of '%s' is a JPEG that can be "
			"decoded",
			images, source);
	out->files = n;
	out->source_bytes = t->job.list.bytes;
	if (rc == 0)
		summarise_rows(t);
	else
		recode_trials_release(out);
	trial_release(t);
	return rc;
}

void recode_trials_release(struct recode_trials *t)
{
	for (unsigned i = 0; i < TRIAL_ROWS; i++)
		for (unsigned k = 0; k < TRIAL_PICTURES; k++) {
			free(t->row[i].picture[k].data);
			t->row[i].picture[k].data = NULL;
		}
}
