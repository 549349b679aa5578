/* SPDX-License-Identifier: MIT */
/* For tests of the loader: a directory of small JPEGs, which each test makes,
 * and the simple loader, with which each batch of the library is compared byte
 * for byte. The simple loader has one thread; for each serving it asks the
 * schedule and decodes and augments the whole image. */
#ifndef LOADER_FIXTURE_H
#define LOADER_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <refrain/loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "../../tools/picture.h"
#include "common/base/cleanup.h"
#include "loader/dataset/dataset.h"
#include "loader/image/decode.h"
#include "loader/core/settings.h"
#include "suite.h"

#define IMAGES 300
#define CLASSES 10
#define SIDE 32
/* A very long time-out: Check ends a test that hangs, and valgrind is slow. */
#define WAIT_MS 600000

static char top[128]; /* directory of this test */
/* Pointer to a loader that a test leaves behind on purpose, so that its memory
 * does not count as a leak. */
static struct refrain_loader *volatile left_behind __attribute__((unused));

static inline int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void image_path(char path[256], unsigned i)
{
	(void)snprintf(path, 256, "%s/c%u/%04u.jpg", top, i % CLASSES, i);
}

static inline void write_file(const char *path, const void *data, size_t bytes)
{
	CLEANUP_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	ck_assert_msg(fd >= 0, "cannot make %s", path);
	ck_assert_int_eq(write(fd, data, bytes), bytes);
}

static inline void make_image(unsigned i, unsigned width, unsigned height)
{
	struct picture_spec spec = {.seed = 1,
		.index = i,
		.class = i % CLASSES,
		.width = width,
		.height = height,
		.quality = 85};
	unsigned char *rgb = malloc((size_t)width * height * 3), *out = NULL;
	unsigned long bytes = 0;
	tjhandle tj = tjInitCompress();
	char path[256];

	ck_assert(rgb && tj);
	ck_assert_int_eq(picture_draw(&spec, rgb), 0);
	ck_assert_int_eq(tjCompress2(tj, rgb, (int)width, 0, (int)height,
				 TJPF_RGB, &out, &bytes, TJSAMP_420, 85, 0),
		0);
	image_path(path, i);
	write_file(path, out, bytes);
	tjFree(out);
	tjDestroy(tj);
	free(rgb);
}

static inline void fixture_make(void)
{
	CLEANUP_FREE char *cwd = getcwd(NULL, 0);
	char path[256], cache[PATH_MAX];

	(void)snprintf(top, sizeof(top), "test_loader.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	for (unsigned c = 0; c < CLASSES; c++) {
		(void)snprintf(path, sizeof(path), "%s/c%u", top, c);
		ck_assert_int_eq(mkdir(path, 0777), 0);
	}
	for (unsigned i = 0; i < IMAGES; i++)
		make_image(i, 64 + i % 7, 48 + i % 5);
	/* The loader ignores XDG_CACHE_HOME if it is a relative path. */
	ck_assert_ptr_nonnull(cwd);
	(void)snprintf(cache, sizeof(cache), "%s/%s.index", cwd, top);
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
}

static inline void fixture_remove(void)
{
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)nftw(
		getenv("XDG_CACHE_HOME"), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline struct refrain_config config_of(void)
{
	struct refrain_config c;

	refrain_config_init(&c);
	c.dataset = top;
	c.batch = 16;
	c.seed = 7;
	c.height = SIDE;
	c.threads = 2;
	c.window = 128;
	c.memory_bytes = 64 << 20;
	return c;
}

static inline struct refrain_loader *open_loader(const struct refrain_config *c)
{
	struct refrain_loader *l;
	int rc = refrain_open(&l, c);

	ck_assert_msg(rc == 0, "%d: %s", rc, refrain_message(NULL));
	return l;
}

static inline struct refrain_stats stats_of(struct refrain_loader *l)
{
	struct refrain_stats st = {.size = sizeof(st)};

	ck_assert_int_eq(refrain_stats_get(l, &st), 0);
	return st;
}

/* -- The simple loader ----------------------------------------------------- */

struct simple {
	struct settings s;
	struct dataset *ds;
	struct schedule schedule;
	struct schedule_cursor cursor;
	struct decoder *decoder;
	struct augmenter *augmenter;
	struct schedule_slot *slots;
	uint8_t *sample;
	uint64_t step;
};

static inline void simple_open(struct simple *r, const struct refrain_config *c)
{
	struct decode_limits limits = {.max_pixels = 1 << 28,
		.max_memory_bytes = 1 << 30,
		.max_scans = 500};
	struct dataset_options options = {
		.path = c->dataset, .source = c->source, .root = c->root};
	struct schedule_config config;
	struct error err = {""};

	ck_assert_int_eq(settings_init(&r->s, c, &err), 0);
	if (*r->s.members.text)
		options.members = r->s.members.text;
	ck_assert_int_eq(dataset_open(&r->ds, &options, &err), 0);
	settings_schedule(&r->s, dataset_count(r->ds), NULL, &config);
	ck_assert_msg(
		schedule_init(&r->schedule, &config, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(schedule_seek(&r->schedule, &r->cursor, 0), 0);
	ck_assert_int_eq(decoder_new(&r->decoder, &limits), 0);
	ck_assert_int_eq(augmenter_new(&r->augmenter, &r->s.augment), 0);
	r->slots = calloc(c->batch, sizeof(*r->slots));
	r->sample = malloc(r->s.sample_bytes);
	r->step = 0;
}

static inline void simple_close(struct simple *r)
{
	decoder_free(r->decoder);
	augmenter_free(r->augmenter);
	dataset_close(r->ds);
	free(r->slots);
	free(r->sample);
}

static inline uint8_t *slurp(int dir_fd, const char *path, size_t *bytes)
{
	CLEANUP_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *data;

	ck_assert_msg(fd >= 0, "no %s", path);
	ck_assert_int_eq(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size + 1);
	ck_assert_int_eq(read(fd, data, (size_t)st.st_size), st.st_size);
	*bytes = (size_t)st.st_size;
	return data;
}

/* Make the sample of a slot from the example `index`. */
static inline const uint8_t *simple_sample(
	struct simple *r, const struct schedule_slot *slot, uint64_t index)
{
	struct example ex;
	struct image_info info;
	struct image image;
	struct error err = {""};
	struct crop crop;
	size_t bytes, need;
	unsigned denom = 8;

	dataset_example(r->ds, index, &ex);
	uint8_t *file = slurp(ex.dir, ex.file, &bytes);
	ck_assert_msg(decode_probe(r->decoder, file, bytes, &info, &err) == 0,
		"%s: %s", ex.name, err.msg);
	for (uint32_t k = 0; k < slot->servings; k++) {
		unsigned d;

		crop_of(&r->s.augment,
			schedule_augment_seed(&r->schedule, slot, k),
			info.width, info.height, &crop);
		d = crop_denom(&r->s.augment, &crop, info.width, info.height);
		denom = d < denom ? d : denom;
	}
	struct rect all = {0, 0, info.width, info.height};
	need = decode_layout(&info, &all, denom, &image);
	image.data = aligned_alloc(64, need / 64 * 64 + 64);
	ck_assert_int_eq(
		decode_region(r->decoder, file, bytes, &info, &image, &err), 0);
	crop_of(&r->s.augment, slot->augment_seed, info.width, info.height,
		&crop);
	ck_assert_int_eq(augment(r->augmenter, &image, &crop, r->sample), 0);
	free(image.data);
	free(file);
	return r->sample;
}

/* Check that the first columns are the samples and the labels under their other
 * names. */
static inline void expect_columns(
	const struct settings *s, const struct refrain_batch *b)
{
	const struct refrain_column *samples = refrain_column_at(b, 0);
	const struct refrain_column *classes = refrain_column_find(b, "class");

	ck_assert_uint_eq(b->column_count, 2 + s->columns.count);
	ck_assert_ptr_null(refrain_column_at(b, b->column_count));
	ck_assert_ptr_null(refrain_column_find(b, "boxes"));
	ck_assert_str_eq(samples->name, b->ndim == 4 ? "image" : "array");
	ck_assert_int_eq(samples->kind,
		b->ndim == 4 ? REFRAIN_KIND_IMAGE : REFRAIN_KIND_ARRAY);
	ck_assert_int_eq(samples->type, b->ndim == 4 ? b->type : REFRAIN_U8);
	ck_assert_uint_eq(samples->ndim, b->ndim);
	ck_assert_mem_eq(samples->shape, b->shape, b->ndim * sizeof(*b->shape));
	ck_assert_ptr_eq(samples->data, b->data);
	ck_assert_uint_eq(samples->data_bytes, b->data_bytes);
	ck_assert_uint_eq(samples->row_bytes, b->sample_bytes);
	ck_assert_int_eq(classes->kind, REFRAIN_KIND_CLASS);
	ck_assert_int_eq(classes->type, REFRAIN_I64);
	ck_assert(classes->ndim == 1 && classes->shape[0] == b->count);
	ck_assert_ptr_eq(classes->data, b->labels);
	ck_assert_uint_eq(classes->data_bytes, b->count * 8);
	ck_assert(!classes->offsets && !classes->lengths);
}

/* Check that `b` is the next batch of the simple loader. Returns the size of
 * the batch, 0 at the end. */
static inline uint32_t simple_next(
	struct simple *r, const struct refrain_batch *b)
{
	uint32_t n = schedule_next(&r->schedule, &r->cursor, r->slots);

	if (!n || !b)
		return n;
	ck_assert_uint_eq(b->count, n);
	ck_assert_uint_eq(b->step, r->step++);
	ck_assert_uint_eq(b->sample_bytes, r->s.sample_bytes);
	expect_columns(&r->s, b);
	for (uint32_t i = 0; i < n; i++) {
		const struct schedule_slot *slot = &r->slots[i];
		struct example ex;

		dataset_example(r->ds, b->substitutes[i], &ex);
		ck_assert_uint_eq(b->indices[i], slot->index);
		ck_assert_uint_eq(b->echoes[i], slot->echo);
		ck_assert_uint_eq(b->seeds[i], slot->augment_seed);
		ck_assert_int_eq(b->labels[i], ex.label);
		ck_assert_msg(
			memcmp((const uint8_t *)b->data + i * b->sample_bytes,
				simple_sample(r, slot, b->substitutes[i]),
				b->sample_bytes) == 0,
			"step %lu place %u (index %lu, echo %u, %d) differs",
			(unsigned long)b->step, i, (unsigned long)slot->index,
			slot->echo, b->status[i]);
	}
	return n;
}

#endif
