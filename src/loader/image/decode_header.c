/* SPDX-License-Identifier: MIT */
/*
 * Checks the header of an image: its kind, whether the file can be complete,
 * and the memory that decoding needs. All this happens before any memory in
 * proportion to the image is allocated. Called by the decoder's thread.
 */
#include <errno.h>
#include <string.h>

#include "loader/image/decode_impl.h"
#include "loader/image/png_impl.h"

/* An estimate for libjpeg's tables, lists of rows and unused parts of its
 * memory. 37 KB were measured. */
#define FIXED_BYTES ((uint64_t)64 << 10)
#define COEF_BLOCK_BYTES ((uint64_t)(DCTSIZE2 * sizeof(JCOEF)))

static uint64_t block_count(const struct decoder *d)
{
	uint64_t n = 0;

	for (int i = 0; i < d->cinfo.num_components; i++) {
		const jpeg_component_info *c = &d->cinfo.comp_info[i];

		n += (uint64_t)c->width_in_blocks * c->height_in_blocks;
	}
	return n;
}

static uint64_t multiple_above(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* libjpeg keeps all coefficients of a file with several scans in memory. */
static uint64_t coefficient_bytes(const struct decoder *d)
{
	uint64_t n = 0;

	for (int i = 0; i < d->cinfo.num_components; i++) {
		const jpeg_component_info *c = &d->cinfo.comp_info[i];
		uint64_t rows = multiple_above(
			c->height_in_blocks, (uint64_t)c->v_samp_factor);

		n += rows *
			(sizeof(void *) +
				COEF_BLOCK_BYTES *
					multiple_above(c->width_in_blocks,
						(uint64_t)c->h_samp_factor));
	}
	return n;
}

/*
 * Returns the bytes of memory for rows: for each component one row of MCUs, a
 * quarter more for context rows, and one row of the component upsampled to full
 * width. At smaller scales decoding needs less.
 */
static uint64_t row_bytes(const struct decoder *d)
{
	uint64_t h = (uint64_t)d->cinfo.max_h_samp_factor;
	uint64_t v = (uint64_t)d->cinfo.max_v_samp_factor, n = 0;

	for (int i = 0; i < d->cinfo.num_components; i++) {
		const jpeg_component_info *c = &d->cinfo.comp_info[i];
		uint64_t width = multiple_above(
			c->width_in_blocks, (uint64_t)c->h_samp_factor);

		n += width * DCTSIZE * (DCTSIZE + 2) *
			(uint64_t)c->v_samp_factor;
		n += v * multiple_above(d->cinfo.image_width, DCTSIZE * h);
	}
	return n;
}

size_t decoder_strip_bytes(const struct image_info *info, uint32_t width)
{
	size_t pixel = info->components == 4 ? 4 : 3;

	if (info->orientation == 1 && info->components != 4)
		return 0;
	return pixel * width * STRIP_ROWS;
}

static int check_kind(struct decoder *d)
{
	J_COLOR_SPACE space = d->cinfo.jpeg_color_space;

#ifndef D_ARITH_CODING_SUPPORTED
	if (d->cinfo.arith_code)
		return error_set(d->err, -EMEDIUMTYPE,
			"arithmetic coding, which is not supported here");
#endif
	if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB &&
		space != JCS_CMYK && space != JCS_YCCK)
		return error_set(d->err, -EMEDIUMTYPE,
			"an unknown colour space with %d components",
			d->cinfo.num_components);
	return 0;
}

/*
 * Does the file have enough bytes for the size of its image? Each block has at
 * least a code for its first coefficient and, in a sequential file, a code for
 * the end of its other coefficients. Each code has at least one bit, except in
 * arithmetic coding.
 */
static int check_bytes(struct decoder *d)
{
	uint64_t bits = block_count(d) * (d->cinfo.progressive_mode ? 1 : 2);
	size_t bytes = d->source.bytes_in_buffer;

	if (d->cinfo.arith_code || bits / 8 <= bytes)
		return 0;
	return error_set(d->err, -EBADMSG,
		"damaged: the header claims %u x %u pixels, which %zu bytes "
		"cannot hold",
		d->cinfo.image_width, d->cinfo.image_height, bytes);
}

/* Does the file contain an end-of-image marker? Other bytes may follow it. The
 * two bytes of the marker cannot occur within the data of a scan. */
static int check_end(struct decoder *d)
{
	const uint8_t *start = d->source.next_input_byte, *p;
	size_t n = d->source.bytes_in_buffer;

	while (n >= 2) {
		p = memrchr(start, 0xff, n - 1);
		if (!p)
			break;
		if (p[1] == JPEG_EOI)
			return 0;
		n = (size_t)(p - start) + 1;
	}
	return error_set(d->err, -EBADMSG,
		"truncated: no end-of-image marker in the %zu bytes after the "
		"header",
		d->source.bytes_in_buffer);
}

static int check_image_size(struct decoder *d)
{
	uint64_t pixels =
		(uint64_t)d->cinfo.image_width * d->cinfo.image_height;

	if (pixels <= d->limits.max_pixels)
		return 0;
	return error_set(d->err, -E2BIG,
		"%u x %u pixels, over the limit of %llu", d->cinfo.image_width,
		d->cinfo.image_height,
		(unsigned long long)d->limits.max_pixels);
}

static int check_decoder_memory(
	struct decoder *d, const struct image_info *info)
{
	if (info->memory_bytes <= d->limits.max_memory_bytes)
		return 0;
	return error_set(d->err, -E2BIG,
		"decoding %u x %u pixels%s takes %llu bytes, over the limit "
		"of %llu",
		d->cinfo.image_width, d->cinfo.image_height,
		jpeg_has_multiple_scans(&d->cinfo) ? " in several scans" : "",
		(unsigned long long)info->memory_bytes,
		(unsigned long long)d->limits.max_memory_bytes);
}

/*
 * Would a crop at a lower scale have wrong columns? At lower scales libjpeg
 * decodes the blocks of subsampled components at up to four times the scale of
 * the others. If this does not bring a component to full size (it does with 2x2
 * sampling, but not with 4x2), the component is also upsampled. In that case
 * libjpeg-turbo 2.1.5 gives a crop wrong columns at the borders of MCUs.
 */
static bool needs_whole_rows(const struct decoder *d)
{
	for (int i = 0; i < d->cinfo.num_components; i++) {
		const jpeg_component_info *c = &d->cinfo.comp_info[i];
		int h = d->cinfo.max_h_samp_factor / c->h_samp_factor;
		int v = d->cinfo.max_v_samp_factor / c->v_samp_factor;

		if (h % 2 == 0 && v % 2 == 0 && (h > 2 || v > 2))
			return true;
	}
	return false;
}

static void fill_info(struct decoder *d, struct image_info *info)
{
	bool turned;

	memset(info, 0, sizeof(*info));
	info->orientation = 1;
	if (d->orientation > 0 && !d->limits.ignore_orientation)
		info->orientation = d->orientation;
	turned = turn_transposes(info->orientation);
	info->width = turned ? d->cinfo.image_height : d->cinfo.image_width;
	info->height = turned ? d->cinfo.image_width : d->cinfo.image_height;
	info->components = (uint8_t)d->cinfo.num_components;
	/* In an image with one component, an MCU is one block. */
	info->mcu_width = DCTSIZE;
	if (d->cinfo.num_components > 1)
		info->mcu_width *= (uint8_t)d->cinfo.max_h_samp_factor;
	info->whole_rows = needs_whole_rows(d);
	info->memory_bytes = sizeof(*d) + FIXED_BYTES + row_bytes(d);
	info->memory_bytes += decoder_strip_bytes(info, d->cinfo.image_width);
	if (jpeg_has_multiple_scans(&d->cinfo))
		info->memory_bytes += coefficient_bytes(d);
}

/* Read the header of a JPEG. Called by decoder_guard(). libjpeg stops after the
 * header of the first scan. */
static int read_jpeg_header(struct decoder *d, void *arg)
{
	struct image_info *info = arg;
	int rc;

	decoder_create(d);
	/* a failure leaves this function by longjmp() */
	(void)jpeg_read_header(&d->cinfo, TRUE);
	rc = check_kind(d);
	if (rc == 0)
		rc = check_image_size(d);
	if (rc == 0)
		rc = check_end(d);
	if (rc == 0)
		rc = check_bytes(d);
	if (rc < 0)
		return rc;
	fill_info(d, info);
	return check_decoder_memory(d, info);
}

int decoder_open_image(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err)
{
	d->err = err;
	d->cinfo.mem = NULL;
	if (bytes == 0)
		return error_set(err, -EMEDIUMTYPE,
			"the file is empty, not an "
			"image");
	decoder_set_input(d, data, bytes);
	return decoder_guard(d, read_jpeg_header, info);
}

void decoder_close_image(struct decoder *d)
{
	jpeg_destroy_decompress(&d->cinfo);
}

int decode_probe(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err)
{
	int rc;

	if (png_is(data, bytes))
		return png_probe(&d->png, &d->limits, data, bytes, info, err);
	rc = decoder_open_image(d, data, bytes, info, err);
	decoder_close_image(d);
	return rc;
}
