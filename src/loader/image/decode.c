/* SPDX-License-Identifier: MIT */
/*
 * The decoder: finds the part of the stored image that a region needs, and
 * decodes its rows. Between images it keeps only the buffer for one strip of
 * rows. Used by one thread at a time.
 *
 * libjpeg-turbo decodes a part of an image exactly only if it is called in this
 * way: crop to whole MCUs with one more column on either side, skip rows once,
 * from row 0, read rows, abort. The additional columns are needed because
 * libjpeg upsamples chroma at the edges of a crop as it does at the edges of an
 * image, and differently in a very narrow crop.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/decode_impl.h"
#include "loader/image/png_impl.h"

/* -- Creation -------------------------------------------------------------- */

int decoder_new(struct decoder **out, const struct decode_limits *limits)
{
	struct decoder *d = calloc(1, sizeof(*d));

	*out = d;
	if (!d)
		return -ENOMEM;
	d->limits = *limits;
	return 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	png_free(d->png);
	free(d->strip);
	free(d);
}

size_t decoder_memory_bytes(const struct decoder *d)
{
	return sizeof(*d) + d->strip_bytes + png_memory_bytes(d->png);
}

void decoder_trim(struct decoder *d)
{
	png_free(d->png);
	d->png = NULL;
	free(d->strip);
	d->strip = NULL;
	d->strip_bytes = 0;
}

/* -- The layout ------------------------------------------------------------ */

static uint32_t divide_up(uint32_t n, unsigned by)
{
	return n / by + (n % by != 0);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Convert a range of pixels at full size to a range of scaled pixels. In a
 * mirrored image, pixels are counted from the other end. If the size of that
 * image is not a multiple of denom, its scaled pixels are offset by less than
 * one pixel, so the range must have one more pixel.
 */
static void scale_range(uint32_t *at, uint32_t *size, unsigned denom,
	uint32_t full, bool mirrored)
{
	uint32_t from = *at / denom;
	uint32_t to = divide_up(*at + *size, denom);

	if (mirrored && denom > 1)
		to = least(to + 1, full);
	*at = from;
	*size = to - from;
}

/* Widen the region to one to which libjpeg can crop. This includes the columns
 * beside the region, because upsampling at the edges of the crop changes
 * them. */
static void widen(struct rect *stored, uint32_t step, uint32_t full)
{
	uint32_t from = stored->x > 0 ? stored->x - 1 : 0;
	uint32_t to = least(stored->x + stored->width + 1, full);

	from -= from % step;
	if (to - from < step)
		to = least(from + step, full);
	stored->x = from;
	stored->width = to - from;
}

static void widen_jpeg(const struct image_info *info, struct image *out)
{
	uint8_t o = info->orientation;
	struct rect stored = turn_stored(o, out);
	uint32_t full = turn_transposes(o) ? out->full_height : out->full_width;
	bool whole = info->whole_rows && out->denom > 1;

	widen(&stored, whole ? full : info->mcu_width / out->denom, full);
	turn_upright(o, &stored, out);
}

size_t decode_layout(const struct image_info *info, const struct rect *region,
	unsigned denom, struct image *out)
{
	struct rect r = *region;
	uint8_t o = info->orientation;

	memset(out, 0, sizeof(*out));
	if (info->kind == IMAGE_PNG)
		denom = 1; /* a PNG has no other scale */
	out->denom = denom;
	out->full_width = divide_up(info->width, denom);
	out->full_height = divide_up(info->height, denom);
	scale_range(&r.x, &r.width, denom, out->full_width, turn_flips_x(o));
	scale_range(&r.y, &r.height, denom, out->full_height, turn_flips_y(o));
	out->x = r.x;
	out->y = r.y;
	out->width = r.width;
	out->height = r.height;
	if (info->kind == IMAGE_JPEG)
		widen_jpeg(info, out);
	out->stride_bytes = (size_t)out->width * 3;
	return out->stride_bytes * out->height;
}

/* -- The pixels ------------------------------------------------------------ */

struct decode_job {
	const struct image_info *info;
	const struct image *out;
	/* Part of the stored image, at the scale of `out` */
	struct rect stored;
};

static void set_parameters(struct decoder *d, const struct decode_job *job)
{
	struct jpeg_decompress_struct *c = &d->cinfo;

	c->scale_num = 1;
	c->scale_denom = job->out->denom;
	c->out_color_space = job->info->components == 4 ? JCS_CMYK : JCS_RGB;
	/* Block smoothing guesses coefficients that are missing in a
	 * progressive file from neighbouring blocks. At the edges of a crop it
	 * would give other results than in the whole image. */
	c->do_block_smoothing = FALSE;
	/* libjpeg checks this limit when it allocates coefficients. This is a
	 * second check, because check_image_size() has already checked the
	 * header. */
	c->mem->max_memory_to_use =
		d->limits.max_memory_bytes < (uint64_t)LONG_MAX
		? (long)d->limits.max_memory_bytes
		: LONG_MAX;
}

/* Start decoding, at the first row and column of the region. */
static int start_rows(struct decoder *d, const struct rect *stored)
{
	JDIMENSION x = stored->x, width = stored->width;

	/* cannot be suspended: all input is present */
	(void)jpeg_start_decompress(&d->cinfo);
	if (stored->y + stored->height > d->cinfo.output_height ||
		x + width > d->cinfo.output_width)
		return error_set(
			d->err, -EINVAL, "the layout does not fit the image");
	jpeg_crop_scanline(&d->cinfo, &x, &width);
	if (x != stored->x || width != stored->width)
		return error_set(
			d->err, -EINVAL, "the layout does not fit the image");
	if (stored->y > 0)
		(void)jpeg_skip_scanlines(&d->cinfo, stored->y);
	return 0;
}

/* Read `count` rows. libjpeg returns only a few rows in each call. */
static void read_rows(
	struct decoder *d, uint8_t *to, size_t stride_bytes, uint32_t count)
{
	JSAMPROW rows[STRIP_ROWS];
	uint32_t done = 0;

	while (done < count) {
		uint32_t n = least(count - done, STRIP_ROWS);

		for (uint32_t i = 0; i < n; i++)
			rows[i] = to + (done + i) * stride_bytes;
		n = jpeg_read_scanlines(&d->cinfo, rows, n);
		if (n == 0) /* known versions of libjpeg always return rows */
			decoder_fail(d,
				error_set(
					d->err, -EBADMSG, "no rows are left"));
		done += n;
	}
}

static void read_strips(struct decoder *d, const struct decode_job *job)
{
	bool cmyk = job->info->components == 4;
	uint32_t width = job->stored.width, height = job->stored.height;
	size_t stride = (size_t)width * (cmyk ? 4 : 3);

	for (uint32_t y = 0; y < height; y += STRIP_ROWS) {
		uint32_t n = least(height - y, STRIP_ROWS);

		read_rows(d, d->strip, stride, n);
		for (uint32_t i = 0; cmyk && i < n; i++)
			cmyk_to_rgb(d->strip + i * stride, width,
				d->cinfo.saw_Adobe_marker);
		turn_rows(job->info->orientation, d->strip, stride, width, y, n,
			job->out);
	}
}

/* Decode the image. Called by decoder_guard(). */
static int read_image(struct decoder *d, void *arg)
{
	const struct decode_job *job = arg;
	int rc;

	set_parameters(d, job);
	rc = start_rows(d, &job->stored);
	if (rc < 0)
		return rc;
	if (decoder_strip_bytes(job->info, job->stored.width) == 0)
		read_rows(d, job->out->data, job->out->stride_bytes,
			job->stored.height);
	else
		read_strips(d, job);
	return 0;
}

static int grow_strip(struct decoder *d, size_t bytes)
{
	uint8_t *p;

	if (bytes <= d->strip_bytes)
		return 0;
	free(d->strip);
	d->strip_bytes = 0;
	d->strip = p = malloc(bytes);
	if (!p)
		return error_set(d->err, -ENOMEM, "%m");
	d->strip_bytes = bytes;
	return 0;
}

static bool same_image(const struct image_info *a, const struct image_info *b)
{
	return a->kind == b->kind && a->width == b->width &&
		a->height == b->height && a->orientation == b->orientation &&
		a->components == b->components && a->mcu_width == b->mcu_width;
}

static bool is_layout(const struct image_info *info, const struct image *out,
	unsigned pixel_bytes)
{
	unsigned denom = out->denom;

	if (denom != 1 && denom != 2 && denom != 4 && denom != 8)
		return false;
	return out->full_width == divide_up(info->width, denom) &&
		out->full_height == divide_up(info->height, denom) &&
		out->width > 0 && out->height > 0 && out->x < out->full_width &&
		out->y < out->full_height &&
		out->width <= out->full_width - out->x &&
		out->height <= out->full_height - out->y &&
		out->stride_bytes >= (size_t)out->width * pixel_bytes;
}

static int decode_opened(struct decoder *d, const struct image_info *now,
	const struct image_info *info, struct image *out)
{
	struct decode_job job = {.info = now, .out = out};
	int rc;

	if (!same_image(now, info))
		return error_set(
			d->err, -EBADMSG, "changed since its header was read");
	if (!is_layout(now, out, 3))
		return error_set(
			d->err, -EINVAL, "the layout does not fit the image");
	job.stored = turn_stored(now->orientation, out);
	rc = grow_strip(d, decoder_strip_bytes(now, job.stored.width));
	if (rc < 0)
		return rc;
	return decoder_guard(d, read_image, &job);
}

/* Decode a region of a PNG. If another decoder has probed the image, or if this
 * decoder was trimmed after the probe, there is no PNG decoder yet; another
 * probe makes it. */
static int decode_png(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err)
{
	struct image_info now;
	int rc = 0;

	if (!png_is(data, bytes))
		return error_set(
			err, -EBADMSG, "changed since its header was read");
	if (!d->png)
		rc = png_probe(&d->png, &d->limits, data, bytes, &now, err);
	if (rc < 0)
		return rc;
	if (!is_layout(info, out, 3) || out->denom != 1)
		return error_set(
			err, -EINVAL, "the layout does not fit the image");
	return png_region(d->png, data, bytes, info, out, err);
}

int decode_region(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err)
{
	struct image_info now;
	int rc;

	if (info->kind == IMAGE_PNG)
		return decode_png(d, data, bytes, info, out, err);
	rc = decoder_open_image(d, data, bytes, &now, err);
	if (rc == 0)
		rc = decode_opened(d, &now, info, out);
	decoder_close_image(d);
	return rc;
}

/* -- Masks ----------------------------------------------------------------- */

size_t decode_ids_layout(const struct image_info *info,
	const struct rect *region, struct image *out)
{
	(void)decode_layout(info, region, 1, out);
	out->stride_bytes = (size_t)out->width * info->id_bytes;
	return out->stride_bytes * out->height;
}

int decode_ids(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err)
{
	if (!info->id_bytes || info->orientation != 1)
		return error_set(err, -EMEDIUMTYPE,
			"a mask must be an upright PNG that is grey or has a "
			"palette");
	if (!png_is(data, bytes) || !d->png)
		return error_set(
			err, -EBADMSG, "changed since its header was read");
	if (!is_layout(info, out, info->id_bytes) || out->denom != 1)
		return error_set(
			err, -EINVAL, "the layout does not fit the image");
	return png_ids(d->png, data, bytes, info, out, err);
}
