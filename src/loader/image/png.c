/* SPDX-License-Identifier: MIT */
/*
 * Decodes a region of a PNG. Rows above the region are inflated and dropped,
 * and decoding stops after the last row of the region. Between images, only the
 * buffer for one row is kept. Used by one thread at a time.
 */
#include "loader/image/png_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "loader/image/decode_impl.h"
#include "loader/image/png_lib_impl.h"

/* An estimate for libspng's context and input buffer, and for the window and
 * tables of zlib. 52 KB were measured. */
#define PNG_FIXED_BYTES ((uint64_t)96 << 10)

struct png {
	struct png_lib lib;
	struct png_crcs crcs;
	uint8_t *row; /* buffer for a stored row; only grows */
	size_t row_bytes;
};

static int png_new(struct png **out, struct error *err)
{
	struct png *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "%m");
	rc = png_lib_open(&p->lib, err);
	if (rc < 0) {
		free(p);
		return rc;
	}
	png_crcs_init(&p->crcs);
	*out = p;
	return 0;
}

void png_free(struct png *p)
{
	if (!p)
		return;
	png_lib_close(&p->lib);
	free(p->row);
	free(p);
}

size_t png_memory_bytes(const struct png *p)
{
	return p ? sizeof(*p) + p->row_bytes : 0;
}

/* -- The header ------------------------------------------------------------ */

/* Returns the memory that decoding needs. libspng has up to three row buffers,
 * and this decoder two. */
static uint64_t png_memory_of(const struct png_header *h, uint8_t orientation)
{
	uint64_t row = png_row_bytes(h, h->width) + 64;
	uint64_t n = sizeof(struct png) + PNG_FIXED_BYTES + 4 * row +
		3 * (uint64_t)h->width;

	if (orientation != 1)
		n += 3 * (uint64_t)h->width * h->height;
	return n;
}

static void png_info(const struct png_header *h, bool ignore_orientation,
	struct image_info *info)
{
	bool turned;

	memset(info, 0, sizeof(*info));
	info->kind = IMAGE_PNG;
	info->orientation = ignore_orientation ? 1 : h->orientation;
	turned = turn_transposes(info->orientation);
	info->width = turned ? h->height : h->width;
	info->height = turned ? h->width : h->height;
	info->components = 3;
	info->mcu_width = 1;
	info->id_bytes = (uint8_t)png_id_bytes(h);
	info->memory_bytes = png_memory_of(h, info->orientation);
}

static int check_limits(const struct image_info *info,
	const struct decode_limits *limits, struct error *err)
{
	if ((uint64_t)info->width * info->height > limits->max_pixels)
		return error_set(err, -E2BIG,
			"%u x %u pixels, over the limit of %llu", info->width,
			info->height, (unsigned long long)limits->max_pixels);
	if (info->memory_bytes > limits->max_memory_bytes)
		return error_set(err, -E2BIG,
			"decoding %u x %u pixels takes %llu bytes, over the "
			"limit of %llu",
			info->width, info->height,
			(unsigned long long)info->memory_bytes,
			(unsigned long long)limits->max_memory_bytes);
	return 0;
}

int png_probe(struct png **p, const struct decode_limits *limits,
	const void *data, size_t bytes, struct image_info *info,
	struct error *err)
{
	struct png_header h;
	int rc = *p ? 0 : png_new(p, err);

	if (rc == 0)
		rc = png_header_read(&h, &(*p)->crcs, data, bytes, false, err);
	if (rc < 0)
		return rc;
	png_info(&h, limits->ignore_orientation, info);
	rc = check_limits(info, limits, err);
	return rc < 0 ? rc : png_check_ratio(&h, err);
}

/* -- Input ----------------------------------------------------------------- */

/* The input of libspng: the signature, then the chunks that libspng needs. */
struct png_input {
	const uint8_t *data;
	size_t bytes, at;     /* offset of the end of `piece` */
	const uint8_t *piece; /* the current signature or chunk */
	size_t left;	      /* bytes of `piece` that are not read yet */
};

static bool is_for_pixels(const struct png_chunk *c)
{
	return c->type == PNG_TYPE('I', 'H', 'D', 'R') ||
		c->type == PNG_TYPE('P', 'L', 'T', 'E') ||
		c->type == PNG_TYPE('I', 'D', 'A', 'T') ||
		c->type == PNG_TYPE('I', 'E', 'N', 'D');
}

static bool next_input(struct png_input *in)
{
	struct png_chunk c;

	while (png_chunk_next(in->data, in->bytes, &in->at, &c)) {
		if (!is_for_pixels(&c))
			continue;
		in->piece = c.start;
		in->left = (size_t)(in->data + in->at - c.start);
		return true;
	}
	return false;
}

static int read_input(struct spng_ctx *ctx, void *user, void *to, size_t bytes)
{
	struct png_input *in = user;
	uint8_t *p = to;

	(void)ctx;
	while (bytes > 0) {
		size_t n = bytes < in->left ? bytes : in->left;

		memcpy(p, in->piece, n);
		p += n;
		bytes -= n;
		in->piece += n;
		in->left -= n;
		if (in->left == 0 && bytes > 0 && !next_input(in))
			return PNG_LIB_IO_EOF;
	}
	return 0;
}

/* -- The pixels ------------------------------------------------------------ */

struct png_job {
	struct png *p;
	struct spng_ctx *ctx;
	const struct png_header *h;
	png_convert_fn *convert;
	unsigned pixel_bytes; /* bytes of a pixel that `convert` makes */
	struct rect part;     /* part of the stored image */
	uint8_t *out;	      /* the first pixel of the part */
	size_t stride_bytes;
	uint8_t *pixels; /* one row of a pass; NULL: not interlaced */
	struct error *err;
};

static int png_failed(const struct png_job *job, int rc)
{
	if (rc == PNG_LIB_EMEM)
		return error_set(job->err, -ENOMEM, "%m");
	return error_set(
		job->err, -EBADMSG, "damaged: %s", job->p->lib.strerror(rc));
}

static int png_grow(uint8_t **p, size_t *have, size_t bytes)
{
	if (bytes <= *have)
		return 0;
	free(*p);
	*have = 0;
	*p = malloc(bytes);
	if (!*p)
		return -ENOMEM;
	*have = bytes;
	return 0;
}

/* Convert the pixels of a row of a pass that are in `part`. */
static void put_pass_row(
	const struct png_job *job, const struct png_pass *pass, uint32_t row)
{
	const struct rect *r = &job->part;
	uint32_t y = pass->y + row * pass->dy;
	/* The numbers of the first pixel in the part, and of the first pixel
	 * after it. */
	uint32_t from = r->x <= pass->x
		? 0
		: (r->x - pass->x + pass->dx - 1) / pass->dx;
	uint32_t to = r->x + r->width <= pass->x
		? 0
		: (r->x + r->width - pass->x + pass->dx - 1) / pass->dx;
	uint8_t *line;

	if (y < r->y || y - r->y >= r->height || from >= to)
		return;
	line = job->out + (y - r->y) * job->stride_bytes;
	if (!job->pixels) {
		job->convert(job->h, job->p->row, from, to - from, line);
		return;
	}
	job->convert(job->h, job->p->row, from, to - from, job->pixels);
	line += (size_t)(pass->x + from * pass->dx - r->x) * job->pixel_bytes;
	for (size_t i = 0; i < to - from; i++)
		memcpy(line + i * pass->dx * job->pixel_bytes,
			job->pixels + i * job->pixel_bytes, job->pixel_bytes);
}

static int read_pass(
	const struct png_job *job, const struct png_pass *pass, bool last)
{
	uint32_t rows = pass->height, end = job->part.y + job->part.height;

	if (last && pass->y + (rows - 1) * pass->dy >= end)
		rows = end > pass->y ? (end - pass->y - 1) / pass->dy + 1 : 0;
	for (uint32_t i = 0; i < rows; i++) {
		int rc = job->p->lib.decode_scanline(
			job->ctx, job->p->row, job->p->row_bytes);

		if (rc != 0 && rc != PNG_LIB_EOI)
			return png_failed(job, rc);
		put_pass_row(job, pass, i);
	}
	return 0;
}

static int read_passes(const struct png_job *job)
{
	unsigned passes = job->h->interlaced ? PNG_PASSES : 1;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < passes; i++) {
		struct png_pass pass, later;
		bool last = true;

		for (unsigned k = i + 1; k < passes; k++)
			last = last && !png_pass(job->h, k, &later);
		if (png_pass(job->h, i, &pass))
			rc = read_pass(job, &pass, last);
	}
	return rc;
}

static int start_png(const struct png_job *job, struct png_input *in)
{
	const struct png_lib *lib = &job->p->lib;
	int rc = lib->set_crc_action(job->ctx, PNG_LIB_NO_CRC, PNG_LIB_NO_CRC);

	if (rc == 0)
		rc = lib->set_png_stream(job->ctx, read_input, in);
	if (rc == 0)
		rc = lib->decode_image(
			job->ctx, NULL, 0, PNG_LIB_RAW, PNG_LIB_ROWS);
	return rc ? png_failed(job, rc) : 0;
}

static int read_png(struct png_job *job, const uint8_t *data, size_t bytes)
{
	struct png_input in = {
		.data = data,
		.bytes = bytes,
		.at = PNG_SIGNATURE_BYTES,
		.piece = data,
		.left = PNG_SIGNATURE_BYTES,
	};
	CLEANUP_FREE uint8_t *pixels = NULL;
	int rc;

	if (job->h->interlaced) {
		job->pixels = pixels = malloc((size_t)job->h->width * 3);
		if (!pixels)
			return error_set(job->err, -ENOMEM, "%m");
	}
	job->ctx = job->p->lib.ctx_new(0);
	if (!job->ctx)
		return error_set(job->err, -ENOMEM, "%m");
	rc = start_png(job, &in);
	if (rc == 0)
		rc = read_passes(job);
	job->p->lib.ctx_free(job->ctx);
	return rc;
}

/* Decode to a temporary buffer, then turn the pixels. */
static int read_turned(struct png_job *job, const uint8_t *data, size_t bytes,
	uint8_t orientation, const struct image *out)
{
	const struct rect *r = &job->part;
	CLEANUP_FREE uint8_t *stored = NULL;
	int rc;

	job->stride_bytes = (size_t)r->width * 3;
	job->out = stored = malloc(job->stride_bytes * r->height);
	if (!stored)
		return error_set(job->err, -ENOMEM, "%m");
	rc = read_png(job, data, bytes);
	if (rc == 0)
		turn_rows(orientation, stored, job->stride_bytes, r->width, 0,
			r->height, out);
	return rc;
}

/* Check that the header is equal to the probed one, and allocate a row. */
static int open_png(struct png_job *job, struct png_header *h, const void *data,
	size_t bytes, const struct image_info *info)
{
	bool turned = turn_transposes(info->orientation);
	struct png *p = job->p;
	int rc = png_header_read(h, &p->crcs, data, bytes, true, job->err);

	if (rc < 0)
		return rc;
	if (h->width != (turned ? info->height : info->width) ||
		h->height != (turned ? info->width : info->height) ||
		png_id_bytes(h) != info->id_bytes)
		return error_set(job->err, -EBADMSG,
			"changed since its header was read");
	job->h = h;
	rc = png_grow(&p->row, &p->row_bytes, png_row_bytes(h, h->width));
	return rc < 0 ? error_set(job->err, rc, "%m") : 0;
}

static struct png_job job_of(struct png *p, const struct image_info *info,
	const struct image *out, struct error *err)
{
	return (struct png_job){
		.p = p,
		.part = turn_stored(info->orientation, out),
		.out = out->data,
		.stride_bytes = out->stride_bytes,
		.pixel_bytes = 3,
		.err = err,
	};
}

int png_region(struct png *p, const void *data, size_t bytes,
	const struct image_info *info, const struct image *out,
	struct error *err)
{
	struct png_job job = job_of(p, info, out, err);
	struct png_header h;
	int rc = open_png(&job, &h, data, bytes, info);

	if (rc < 0)
		return rc;
	job.convert = png_to_rgb(&h);
	return info->orientation == 1
		? read_png(&job, data, bytes)
		: read_turned(&job, data, bytes, info->orientation, out);
}

int png_ids(struct png *p, const void *data, size_t bytes,
	const struct image_info *info, const struct image *out,
	struct error *err)
{
	struct png_job job = job_of(p, info, out, err);
	struct png_header h;
	int rc = open_png(&job, &h, data, bytes, info);

	if (rc < 0)
		return rc;
	job.convert = png_to_ids(&h);
	job.pixel_bytes = png_id_bytes(&h);
	return read_png(&job, data, bytes);
}
