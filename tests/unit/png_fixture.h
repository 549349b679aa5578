/* SPDX-License-Identifier: MIT */
/* Writes PNGs of every kind from samples that a seed determines, and computes
 * the RGB that PIL makes of them, with which tests compare the decoder. Rows
 * have filters of all types, and are not compressed. One thread. */
#ifndef TESTS_PNG_FIXTURE_H
#define TESTS_PNG_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct png_kind {
	const char *name;
	uint8_t color, depth;
	bool interlaced;
	/* number of colours in the palette; may be fewer than are used */
	unsigned colours;
	uint8_t orientation;  /* orientation in eXIf; 0: the file has no eXIf */
	uint32_t chunk_bytes; /* size of an IDAT chunk; 0: there is one chunk */
};

static const struct png_kind png_kinds[] = {
	{.name = "grey 1", .color = 0, .depth = 1},
	{.name = "grey 2", .color = 0, .depth = 2},
	{.name = "grey 4", .color = 0, .depth = 4, .chunk_bytes = 7},
	{.name = "grey 8", .color = 0, .depth = 8},
	{.name = "grey 16", .color = 0, .depth = 16, .chunk_bytes = 100},
	{.name = "RGB 8", .color = 2, .depth = 8, .chunk_bytes = 1000},
	{.name = "RGB 16", .color = 2, .depth = 16},
	{.name = "palette 1", .color = 3, .depth = 1, .colours = 2},
	{.name = "palette 2", .color = 3, .depth = 2, .colours = 3},
	{.name = "palette 4", .color = 3, .depth = 4, .colours = 16},
	{.name = "palette 8", .color = 3, .depth = 8, .colours = 200},
	{.name = "grey, alpha", .color = 4, .depth = 8},
	{.name = "grey, alpha 16", .color = 4, .depth = 16},
	{.name = "RGB, alpha", .color = 6, .depth = 8},
	{.name = "RGB, alpha 16", .color = 6, .depth = 16},
	{.name = "turned grey", .color = 0, .depth = 8, .orientation = 6},
	{.name = "turned RGB", .color = 2, .depth = 8, .orientation = 3},
	{.name = "mirrored RGB", .color = 2, .depth = 8, .orientation = 7},
	{.name = "grey 1, passes", .color = 0, .depth = 1, .interlaced = true},
	{.name = "grey 4, passes", .color = 0, .depth = 4, .interlaced = true},
	{.name = "grey 16, passes",
		.color = 0,
		.depth = 16,
		.interlaced = true},
	{.name = "RGB, passes",
		.color = 2,
		.depth = 8,
		.interlaced = true,
		.chunk_bytes = 500},
	{.name = "palette 2, passes",
		.color = 3,
		.depth = 2,
		.interlaced = true,
		.colours = 4},
	{.name = "palette 8, passes",
		.color = 3,
		.depth = 8,
		.interlaced = true,
		.colours = 256},
	{.name = "RGB, alpha 16, passes, turned",
		.color = 6,
		.depth = 16,
		.interlaced = true,
		.orientation = 5},
};

#define PNG_KINDS (sizeof(png_kinds) / sizeof(png_kinds[0]))

struct png_file {
	uint8_t *data;
	size_t bytes;
	uint8_t *rgb;	   /* pixels as they are stored, not turned */
	uint16_t *samples; /* samples with interleaved channels */
};

struct png_maker {
	const struct png_kind *kind;
	uint32_t width, height;
	uint64_t state;
	uint8_t palette[256][3];
	uint16_t *samples; /* the samples of the file */
	struct png_file file;
};

static inline uint32_t png_draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33);
}

static inline unsigned png_channels(const struct png_kind *k)
{
	static const unsigned n[] = {1, 0, 3, 1, 2, 0, 4};

	return n[k->color];
}

static inline void png_add(struct png_file *f, const void *data, size_t bytes)
{
	f->data = realloc(f->data, f->bytes + bytes + 1);
	if (!f->data)
		abort();
	if (bytes > 0)
		memcpy(f->data + f->bytes, data, bytes);
	f->bytes += bytes;
}

static inline void png_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Compute a CRC bit by bit, as the standard defines it. */
static inline uint32_t png_crc_of(const uint8_t *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ UINT32_C(0xedb88320) : c >> 1;
	}
	return ~c;
}

static inline void png_add_chunk(
	struct png_file *f, const char *type, const void *data, uint32_t bytes)
{
	size_t at = f->bytes;
	uint8_t word[4];

	png_be32(word, bytes);
	png_add(f, word, 4);
	png_add(f, type, 4);
	png_add(f, data, bytes);
	png_be32(word, png_crc_of(f->data + at + 4, 4 + (size_t)bytes));
	png_add(f, word, 4);
}

/* -- Samples --------------------------------------------------------------- */

/* Fill the samples with slopes, edges and noise. */
static inline void png_fill(struct png_maker *m)
{
	unsigned n = png_channels(m->kind);
	size_t count = (size_t)m->width * m->height * n;
	uint32_t mask = (1U << m->kind->depth) - 1;

	m->samples = malloc((count + 1) * sizeof(*m->samples));
	m->file.rgb = malloc((size_t)m->width * m->height * 3 + 1);
	if (!m->samples || !m->file.rgb)
		abort();
	for (size_t i = 0; i < count; i++) {
		uint32_t v = (uint32_t)(i * 37 + i / m->width * 91);

		if (png_draw(&m->state) % 4 == 0)
			v = png_draw(&m->state);
		/* A third of the samples of 16 bits are small. */
		if (m->kind->depth == 16 && png_draw(&m->state) % 3 == 0)
			v &= 511;
		m->samples[i] = (uint16_t)(v & mask);
	}
	for (unsigned i = 0; i < 256; i++)
		for (unsigned c = 0; c < 3; c++)
			m->palette[i][c] = i < m->kind->colours
				? (uint8_t)png_draw(&m->state)
				: (uint8_t)i;
}

/* Returns the RGB that PIL makes of a pixel. */
static inline void png_rgb(
	const struct png_maker *m, const uint16_t *from, uint8_t *to)
{
	unsigned depth = m->kind->depth, max = (1U << depth) - 1;
	/* grey, or indexes of a palette */
	bool grey = png_channels(m->kind) < 3;

	for (unsigned c = 0; c < 3; c++) {
		unsigned v = from[grey ? 0 : c];

		if (m->kind->color == 3)
			to[c] = m->palette[from[0]][c];
		else if (m->kind->color == 0 && depth == 16)
			to[c] = (uint8_t)(v > 255 ? 255 : v);
		else if (depth == 16)
			to[c] = (uint8_t)(v >> 8);
		else
			to[c] = (uint8_t)(v * 255 / max);
	}
}

/* -- Rows ------------------------------------------------------------------ */

static inline uint8_t png_predict(
	unsigned filter, unsigned a, unsigned b, unsigned c)
{
	int p = (int)a + (int)b - (int)c;
	int pa = abs(p - (int)a), pb = abs(p - (int)b), pc = abs(p - (int)c);

	switch (filter) {
	case 1:
		return (uint8_t)a;
	case 2:
		return (uint8_t)b;
	case 3:
		return (uint8_t)((a + b) / 2);
	case 4:
		if (pa <= pb && pa <= pc)
			return (uint8_t)a;
		return (uint8_t)(pb <= pc ? b : c);
	default:
		return 0;
	}
}

/* Pack the pixels x, x + dx, ... of row y. Returns the number of bytes. */
static inline size_t png_pack(const struct png_maker *m, uint32_t x,
	uint32_t dx, uint32_t y, uint8_t *to)
{
	unsigned n = png_channels(m->kind), depth = m->kind->depth;
	size_t bit = 0;

	memset(to, 0, (size_t)m->width * n * 2 + 1);
	for (; x < m->width; x += dx)
		for (unsigned c = 0; c < n; c++, bit += depth) {
			unsigned v =
				m->samples[((size_t)y * m->width + x) * n + c];

			if (depth == 16) {
				to[bit / 8] = (uint8_t)(v >> 8);
				to[bit / 8 + 1] = (uint8_t)v;
				continue;
			}
			to[bit / 8] |= (uint8_t)(v
				<< (8 - depth - (unsigned)(bit % 8)));
		}
	return (bit + 7) / 8;
}

static inline void png_add_pass(struct png_maker *m, struct png_file *raw,
	uint32_t x, uint32_t y, uint32_t dx, uint32_t dy)
{
	unsigned step = png_channels(m->kind) * m->kind->depth / 8;
	size_t room = (size_t)m->width * png_channels(m->kind) * 2 + 1;
	uint8_t *now = malloc(room), *last = calloc(1, room), *out;

	step = step ? step : 1;
	out = malloc(room + 1);
	if (!now || !last || !out)
		abort();
	for (; x < m->width && y < m->height; y += dy) {
		size_t n = png_pack(m, x, dx, y, now);

		out[0] = (uint8_t)(png_draw(&m->state) % 5);
		for (size_t i = 0; i < n; i++) {
			unsigned a = i < step ? 0 : now[i - step];
			unsigned c = i < step ? 0 : last[i - step];

			out[1 + i] = (uint8_t)(now[i] -
				png_predict(out[0], a, last[i], c));
		}
		png_add(raw, out, n + 1);
		memcpy(last, now, n);
	}
	free(now);
	free(last);
	free(out);
}

/* Write stored blocks of deflate in a stream of zlib. */
static inline struct png_file png_deflate(const struct png_file *raw)
{
	uint32_t a = 1, b = 0;
	struct png_file z = {.bytes = 0};
	uint8_t word[5];
	size_t at = 0;

	png_add(&z, "\x78\x01", 2);
	do {
		size_t n = raw->bytes - at < 65535 ? raw->bytes - at : 65535;

		word[0] = at + n == raw->bytes;
		word[1] = (uint8_t)n;
		word[2] = (uint8_t)(n >> 8);
		word[3] = (uint8_t)~word[1];
		word[4] = (uint8_t)~word[2];
		png_add(&z, word, 5);
		png_add(&z, raw->data + at, n);
		at += n;
	} while (at < raw->bytes);
	for (size_t i = 0; i < raw->bytes; i++) {
		a = (a + raw->data[i]) % 65521;
		b = (b + a) % 65521;
	}
	png_be32(word, b << 16 | a);
	png_add(&z, word, 4);
	return z;
}

/* -- The file -------------------------------------------------------------- */

static inline void png_add_pixels(struct png_maker *m)
{
	static const uint32_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8},
		{0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2},
		{0, 1, 1, 2}};
	struct png_file raw = {.bytes = 0}, z;
	size_t most;

	if (!m->kind->interlaced)
		png_add_pass(m, &raw, 0, 0, 1, 1);
	for (int i = 0; m->kind->interlaced && i < 7; i++)
		png_add_pass(m, &raw, passes[i][0], passes[i][1], passes[i][2],
			passes[i][3]);
	z = png_deflate(&raw);
	most = m->kind->chunk_bytes ? m->kind->chunk_bytes : z.bytes;
	for (size_t at = 0; at < z.bytes; at += most)
		png_add_chunk(&m->file, "IDAT", z.data + at,
			(uint32_t)(z.bytes - at < most ? z.bytes - at : most));
	free(raw.data);
	free(z.data);
}

static inline struct png_file png_make(const struct png_kind *kind,
	uint32_t width, uint32_t height, uint64_t seed)
{
	struct png_maker m = {
		.kind = kind,
		.width = width,
		.height = height,
		.state = seed,
	};
	uint8_t ihdr[13] = {0},
		exif[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0,
			0, 0, 1, 0, kind->orientation, 0, 0, 0, 0, 0, 0};

	png_fill(&m);
	for (size_t i = 0; i < (size_t)width * height; i++)
		png_rgb(&m, m.samples + i * png_channels(kind),
			m.file.rgb + i * 3);
	png_add(&m.file, "\x89PNG\r\n\x1a\n", 8);
	png_be32(ihdr, width);
	png_be32(ihdr + 4, height);
	ihdr[8] = kind->depth;
	ihdr[9] = kind->color;
	ihdr[12] = kind->interlaced;
	png_add_chunk(&m.file, "IHDR", ihdr, sizeof(ihdr));
	png_add_chunk(&m.file, "tEXt", "Title\0a test", 12);
	if (kind->orientation)
		png_add_chunk(&m.file, "eXIf", exif, sizeof(exif));
	if (kind->color == 3)
		png_add_chunk(&m.file, "PLTE", m.palette, 3 * kind->colours);
	png_add_pixels(&m);
	png_add_chunk(&m.file, "IEND", "", 0);
	m.file.samples = m.samples;
	return m.file;
}

static inline void png_drop(struct png_file *f)
{
	free(f->data);
	free(f->rgb);
	free(f->samples);
}

#endif
