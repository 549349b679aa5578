/* SPDX-License-Identifier: MIT */
/* Makes JPEGs of every kind with libjpeg. A seed determines their pixels. Also
 * decodes them by plain calls of libjpeg; tests compare the decoder with that.
 * One thread. */
#ifndef TESTS_JPEG_FIXTURE_H
#define TESTS_JPEG_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

struct jpeg_kind {
	const char *name;
	J_COLOR_SPACE space; /* colour space of the pixels in the file */
	uint8_t h[4], v[4];  /* sampling factors; 0 stands for 1 */
	bool progressive, arithmetic;
	unsigned restart; /* restart interval in MCUs */
	/* a sequential file with a scan for each component */
	bool separate;
	bool without_adobe; /* the file has no Adobe marker */
};

struct jpeg_file {
	unsigned char *data;
	unsigned long bytes;
};

static const struct jpeg_kind jpeg_kinds[] = {
	{.name = "4:4:4", .space = JCS_YCbCr},
	{.name = "4:2:2", .space = JCS_YCbCr, .h = {2}},
	{.name = "4:2:0", .space = JCS_YCbCr, .h = {2}, .v = {2}},
	{.name = "4:4:0", .space = JCS_YCbCr, .v = {2}},
	{.name = "4:1:1", .space = JCS_YCbCr, .h = {4}},
	{.name = "4:1:0", .space = JCS_YCbCr, .h = {4}, .v = {2}},
	{.name = "2x4", .space = JCS_YCbCr, .h = {2}, .v = {4}},
	{.name = "4x4, separate scans",
		.space = JCS_YCbCr,
		.h = {4},
		.v = {4},
		.separate = true},
	{.name = "tall", .space = JCS_YCbCr, .v = {4}},
	{.name = "three across", .space = JCS_YCbCr, .h = {3}},
	{.name = "three down", .space = JCS_YCbCr, .v = {3}},
	{.name = "uneven chroma",
		.space = JCS_YCbCr,
		.h = {2, 1, 2},
		.v = {2, 2, 1}},
	{.name = "little luma", .space = JCS_YCbCr, .h = {1, 2, 2}},
	{.name = "grey", .space = JCS_GRAYSCALE},
	{.name = "grey, 2x2", .space = JCS_GRAYSCALE, .h = {2}, .v = {2}},
	{.name = "RGB", .space = JCS_RGB},
	{.name = "RGB, 2x1", .space = JCS_RGB, .h = {1, 2, 1}},
	{.name = "CMYK", .space = JCS_CMYK},
	{.name = "CMYK, not inverted",
		.space = JCS_CMYK,
		.without_adobe = true},
	{.name = "YCCK, 4:2:0",
		.space = JCS_YCCK,
		.h = {2, 1, 1, 2},
		.v = {2, 1, 1, 2}},
	{.name = "progressive, 4:4:4", .space = JCS_YCbCr, .progressive = true},
	{.name = "progressive, 4:2:0",
		.space = JCS_YCbCr,
		.h = {2},
		.v = {2},
		.progressive = true},
	{.name = "progressive, 4:2:2",
		.space = JCS_YCbCr,
		.h = {2},
		.progressive = true,
		.restart = 3},
	{.name = "progressive, grey",
		.space = JCS_GRAYSCALE,
		.progressive = true},
	{.name = "progressive, YCCK",
		.space = JCS_YCCK,
		.h = {2, 1, 1, 2},
		.progressive = true},
	{.name = "restarts, 4:2:0",
		.space = JCS_YCbCr,
		.h = {2},
		.v = {2},
		.restart = 5},
	{.name = "restarts, 4:4:4", .space = JCS_YCbCr, .restart = 1},
	{.name = "separate scans, 4:2:0",
		.space = JCS_YCbCr,
		.h = {2},
		.v = {2},
		.separate = true},
#ifdef C_ARITH_CODING_SUPPORTED
	{.name = "arithmetic, 4:2:0",
		.space = JCS_YCbCr,
		.h = {2},
		.v = {2},
		.arithmetic = true},
	{.name = "arithmetic, progressive",
		.space = JCS_YCbCr,
		.h = {2},
		.progressive = true,
		.arithmetic = true,
		.restart = 7},
#endif
};

#define JPEG_KINDS (sizeof(jpeg_kinds) / sizeof(jpeg_kinds[0]))

/* Draw a number from a linear congruential generator, of which only the high
 * bits are random enough. */
static inline uint32_t jpeg_draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) +
		UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

/* Returns a random number from 0 to `below` - 1. */
static inline uint32_t jpeg_below(uint64_t *state, uint32_t below)
{
	return jpeg_draw(state) % below;
}

/* Fill a row with slopes, edges and noise: every row and column differs from
 * the next. */
static inline void jpeg_fill_row(
	uint8_t *row, uint32_t width, int channels, uint32_t y, uint64_t *state)
{
	for (uint32_t x = 0; x < width; x++)
		for (int c = 0; c < channels; c++) {
			uint32_t v = x * (3 + (uint32_t)c) + y * 5;

			v += (x / 7 + y / 5) % 2 ? 90 : 0;
			v += jpeg_draw(state) % 32;
			row[x * (uint32_t)channels + (uint32_t)c] = (uint8_t)v;
		}
}

static inline void jpeg_set_kind(
	struct jpeg_compress_struct *c, const struct jpeg_kind *kind)
{
	static const jpeg_scan_info separate[] = {{1, {0}, 0, 63, 0, 0},
		{1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};

	jpeg_set_colorspace(c, kind->space);
	for (int i = 0; i < c->num_components; i++) {
		c->comp_info[i].h_samp_factor = kind->h[i] ? kind->h[i] : 1;
		c->comp_info[i].v_samp_factor = kind->v[i] ? kind->v[i] : 1;
	}
	c->restart_interval = kind->restart;
	c->arith_code = kind->arithmetic;
	if (kind->without_adobe)
		c->write_Adobe_marker = FALSE;
	if (kind->progressive)
		jpeg_simple_progression(c);
	if (kind->separate) {
		c->scan_info = separate;
		c->num_scans = 3;
	}
}

/* Write EXIF data that contain only the orientation. */
static inline void jpeg_write_exif(
	struct jpeg_compress_struct *c, unsigned orientation, bool big_endian)
{
	static const uint8_t big[] =
		"Exif\0\0MM\0*\0\0\0\010\0\1\1\022\0\3\0\0\0\1\0\0\0\0\0\0\0\0";
	static const uint8_t little[] =
		"Exif\0\0II*\0\010\0\0\0\1\0\022\1\3\0\1\0\0\0\0\0\0\0\0\0\0\0";
	uint8_t data[sizeof(big) - 1];

	memcpy(data, big_endian ? big : little, sizeof(data));
	data[big_endian ? 25 : 24] = (uint8_t)orientation;
	jpeg_write_marker(c, JPEG_APP0 + 1, data, sizeof(data));
}

static inline J_COLOR_SPACE jpeg_input_space(J_COLOR_SPACE stored)
{
	switch (stored) {
	case JCS_GRAYSCALE:
		return JCS_GRAYSCALE;
	case JCS_CMYK:
	case JCS_YCCK:
		return JCS_CMYK;
	default:
		return JCS_RGB;
	}
}

/* Make a file. If `noise` is false, all pixels are the same. If `orientation`
 * is 0, the file has no EXIF data. */
static inline struct jpeg_file jpeg_make(const struct jpeg_kind *kind,
	uint32_t width, uint32_t height, unsigned orientation, uint64_t seed,
	bool noise)
{
	struct jpeg_file f = {NULL, 0};
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	uint64_t state = seed;
	uint8_t *row;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &f.data, &f.bytes);
	c.image_width = width;
	c.image_height = height;
	c.in_color_space = jpeg_input_space(kind->space);
	c.input_components = c.in_color_space == JCS_CMYK ? 4 : 3;
	if (c.in_color_space == JCS_GRAYSCALE)
		c.input_components = 1;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, 60 + (int)(seed % 40), TRUE);
	jpeg_set_kind(&c, kind);
	row = calloc(width, (size_t)c.input_components);
	jpeg_start_compress(&c, TRUE);
	if (orientation > 0)
		jpeg_write_exif(&c, orientation, seed % 2);
	while (c.next_scanline < height) {
		if (noise)
			jpeg_fill_row(row, width, c.input_components,
				c.next_scanline, &state);
		(void)jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	return f;
}

/* All pixels of an image at 1/denom in the stored orientation, as RGB or CMYK.
 * The caller of jpeg_decode_all() frees `data`. */
struct jpeg_pixels {
	uint8_t *data;
	uint32_t width, height, channels;
	bool adobe;
};

static inline struct jpeg_pixels jpeg_decode_all(
	const void *data, size_t bytes, unsigned denom)
{
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr errors;
	struct jpeg_pixels p;
	uint8_t *row;

	c.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, data, bytes);
	(void)jpeg_read_header(&c, TRUE);
	c.scale_num = 1;
	c.scale_denom = denom;
	c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
	(void)jpeg_start_decompress(&c);
	p.width = c.output_width;
	p.height = c.output_height;
	p.channels = (uint32_t)c.output_components;
	p.adobe = c.saw_Adobe_marker;
	p.data = malloc((size_t)p.width * p.height * p.channels);
	while (c.output_scanline < c.output_height) {
		row = p.data + (size_t)c.output_scanline * p.width * p.channels;
		(void)jpeg_read_scanlines(&c, &row, 1);
	}
	(void)jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
	return p;
}

#endif
