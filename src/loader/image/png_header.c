/* SPDX-License-Identifier: MIT */
/*
 * Parses the chunks of a PNG, and checks everything that can be checked without
 * inflating its pixels. Any thread.
 */
#include <errno.h>
#include <string.h>

#include "loader/image/decode_impl.h"
#include "loader/image/png_impl.h"

#define CHUNK_EXTRA ((size_t)12) /* length, type and CRC, in bytes */
#define SIDE_MAX ((uint32_t)INT32_MAX)
/* Deflate cannot compress by more than this factor. */
#define DEFLATE_RATIO 1032

#define IHDR PNG_TYPE('I', 'H', 'D', 'R')
#define PLTE PNG_TYPE('P', 'L', 'T', 'E')
#define IDAT PNG_TYPE('I', 'D', 'A', 'T')
#define IEND PNG_TYPE('I', 'E', 'N', 'D')
#define EXIF PNG_TYPE('e', 'X', 'I', 'f')

static const uint8_t signature[PNG_SIGNATURE_BYTES] = {
	0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool png_is(const void *data, size_t bytes)
{
	return bytes >= sizeof(signature) &&
		memcmp(data, signature, sizeof(signature)) == 0;
}

/* -- CRC-32, eight bytes at a time ----------------------------------------- */

void png_crcs_init(struct png_crcs *t)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ UINT32_C(0xedb88320) : c >> 1;
		t->of[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++) {
			uint32_t c = t->of[k - 1][i];

			t->of[k][i] = c >> 8 ^ t->of[0][c & 255];
		}
}

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
		(uint32_t)p[1] << 8 | p[0];
}

static uint32_t png_crc(const struct png_crcs *t, const uint8_t *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	for (; n >= 8; n -= 8, p += 8) {
		uint32_t a = get_le32(p) ^ c, b = get_le32(p + 4);

		c = t->of[7][a & 255] ^ t->of[6][a >> 8 & 255] ^
			t->of[5][a >> 16 & 255] ^ t->of[4][a >> 24] ^
			t->of[3][b & 255] ^ t->of[2][b >> 8 & 255] ^
			t->of[1][b >> 16 & 255] ^ t->of[0][b >> 24];
	}
	for (; n > 0; n--, p++)
		c = c >> 8 ^ t->of[0][(c ^ *p) & 255];
	return ~c;
}

/* -- Chunks ---------------------------------------------------------------- */

static uint32_t get_be32(const uint8_t *p)
{
	return PNG_TYPE(p[0], p[1], p[2], p[3]);
}

bool png_chunk_next(
	const uint8_t *data, size_t bytes, size_t *at, struct png_chunk *out)
{
	const uint8_t *p = data + *at;

	if (bytes - *at < CHUNK_EXTRA)
		return false;
	out->start = p;
	out->bytes = get_be32(p);
	out->type = get_be32(p + 4);
	if (out->bytes > bytes - *at - CHUNK_EXTRA)
		return false;
	*at += CHUNK_EXTRA + out->bytes;
	return true;
}

static bool is_intact(const struct png_crcs *crcs, const struct png_chunk *c)
{
	return png_crc(crcs, c->start + 4, 4 + (size_t)c->bytes) ==
		get_be32(c->start + 8 + c->bytes);
}

/* Must a decoder know chunks of this type? A bit of the type says so. */
static bool is_needed(uint32_t type)
{
	return !(type & UINT32_C(0x20000000));
}

static bool is_depth(uint8_t color, uint8_t depth)
{
	/* Bit n is set if a bit depth of n is allowed. */
	static const uint32_t depths[] = {
		[PNG_GREY] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
		[PNG_RGB] = 1 << 8 | 1 << 16,
		[PNG_PALETTE] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
		[PNG_GREY_ALPHA] = 1 << 8 | 1 << 16,
		[PNG_RGB_ALPHA] = 1 << 8 | 1 << 16,
	};

	return color < sizeof(depths) / sizeof(depths[0]) && depth <= 16 &&
		depths[color] >> depth & 1;
}

static int read_ihdr(
	struct png_header *h, const struct png_chunk *c, struct error *err)
{
	const uint8_t *p = c->start + 8;

	if (c->type != IHDR || c->bytes != 13)
		return error_set(
			err, -EBADMSG, "damaged: no PNG header comes first");
	h->width = get_be32(p);
	h->height = get_be32(p + 4);
	h->depth = p[8];
	h->color = p[9];
	h->interlaced = p[12] == 1;
	if (h->width - 1 >= SIDE_MAX || h->height - 1 >= SIDE_MAX)
		return error_set(err, -EBADMSG,
			"damaged: the header claims %u x %u pixels", h->width,
			h->height);
	if (!is_depth(h->color, h->depth) || p[10] || p[11] || p[12] > 1)
		return error_set(err, -EMEDIUMTYPE,
			"a PNG of an unknown kind: depth %u, colour type %u, "
			"compression %u, filter %u, interlace %u",
			p[8], p[9], p[10], p[11], p[12]);
	return 0;
}

/* Colours that the palette lacks become grey, as in PIL. */
static int read_palette(
	struct png_header *h, const struct png_chunk *c, struct error *err)
{
	if (c->bytes == 0 || c->bytes > sizeof(h->palette) || c->bytes % 3)
		return error_set(err, -EBADMSG,
			"damaged: a palette of %u bytes", c->bytes);
	memcpy(h->palette, c->start + 8, c->bytes);
	return 0;
}

struct chunks {
	struct png_header *h;
	const struct png_crcs *crcs;
	bool all; /* also check the CRCs of IDAT chunks */
	bool palette, idat, ended;
	uint32_t last; /* the type of the previous chunk */
};

static int take_known(
	struct chunks *t, const struct png_chunk *c, struct error *err)
{
	uint8_t o;

	switch (c->type) {
	case PLTE:
		if (t->palette || t->idat)
			return error_set(err, -EBADMSG,
				"damaged: a palette out of place");
		t->palette = true;
		return read_palette(t->h, c, err);
	case IDAT:
		if (t->idat && t->last != IDAT)
			return error_set(err, -EBADMSG,
				"damaged: the pixels are not in one piece");
		t->idat = true;
		t->h->idat_bytes += c->bytes;
		return 0;
	case IEND:
		t->ended = true;
		return 0;
	case EXIF:
		o = tiff_orientation(c->start + 8, c->bytes);
		if (o)
			t->h->orientation = o;
		return 0;
	default:
		if (!is_needed(c->type))
			return 0;
		return error_set(err, c->type == IHDR ? -EBADMSG : -EMEDIUMTYPE,
			"an unknown kind of PNG: chunk %08x", c->type);
	}
}

static int take_chunk(
	struct chunks *t, const struct png_chunk *c, struct error *err)
{
	int rc;

	if ((c->type != IDAT || t->all) && !is_intact(t->crcs, c))
		return error_set(
			err, -EBADMSG, "damaged: a chunk has a wrong CRC");
	rc = t->last ? take_known(t, c, err) : read_ihdr(t->h, c, err);
	t->last = c->type;
	return rc;
}

/* -- Checks of the whole file ---------------------------------------------- */

size_t png_row_bytes(const struct png_header *h, uint32_t n)
{
	static const uint8_t samples[] = {
		[PNG_GREY] = 1,
		[PNG_RGB] = 3,
		[PNG_PALETTE] = 1,
		[PNG_GREY_ALPHA] = 2,
		[PNG_RGB_ALPHA] = 4,
	};

	return (size_t)(((uint64_t)n * samples[h->color] * h->depth + 7) / 8);
}

static uint32_t in_steps(uint32_t n, uint32_t from, uint32_t step)
{
	return n > from ? (n - from - 1) / step + 1 : 0;
}

bool png_pass(const struct png_header *h, unsigned i, struct png_pass *out)
{
	static const struct png_pass adam7[PNG_PASSES] = {
		{0, 0, 8, 8, 0, 0},
		{4, 0, 8, 8, 0, 0},
		{0, 4, 4, 8, 0, 0},
		{2, 0, 4, 4, 0, 0},
		{0, 2, 2, 4, 0, 0},
		{1, 0, 2, 2, 0, 0},
		{0, 1, 1, 2, 0, 0},
	};
	static const struct png_pass plain = {0, 0, 1, 1, 0, 0};

	if (i >= (h->interlaced ? PNG_PASSES : 1))
		return false;
	*out = h->interlaced ? adam7[i] : plain;
	out->width = in_steps(h->width, out->x, out->dx);
	out->height = in_steps(h->height, out->y, out->dy);
	return out->width > 0 && out->height > 0;
}

int png_check_ratio(const struct png_header *h, struct error *err)
{
	uint64_t room = h->idat_bytes * DEFLATE_RATIO;
	bool fits = true;

	for (unsigned i = 0; fits && i < PNG_PASSES; i++) {
		struct png_pass pass;
		uint64_t row;

		if (!png_pass(h, i, &pass))
			continue;
		row = png_row_bytes(h, pass.width) + UINT64_C(1);
		fits = pass.height <= room / row;
		room -= fits ? pass.height * row : 0;
	}
	if (fits)
		return 0;
	return error_set(err, -EBADMSG,
		"damaged: the header claims %u x %u pixels, which %llu bytes "
		"cannot hold",
		h->width, h->height, (unsigned long long)h->idat_bytes);
}

int png_header_read(struct png_header *h, const struct png_crcs *crcs,
	const void *data, size_t bytes, bool all, struct error *err)
{
	struct chunks t = {.h = h, .crcs = crcs, .all = all};
	size_t at = PNG_SIGNATURE_BYTES;
	struct png_chunk c;
	int rc = 0;

	memset(h, 0, sizeof(*h));
	h->orientation = 1;
	for (unsigned i = 0; i < 256; i++)
		memset(h->palette[i], (int)i, 3);
	while (rc == 0 && !t.ended && png_chunk_next(data, bytes, &at, &c))
		rc = take_chunk(&t, &c, err);
	if (rc < 0)
		return rc;
	if (!t.ended)
		return error_set(err, -EBADMSG,
			"truncated: no end-of-image chunk in %zu bytes", bytes);
	if (!t.idat || (h->color == PNG_PALETTE && !t.palette))
		return error_set(err, -EBADMSG, "damaged: it has no %s",
			t.idat ? "palette" : "pixels");
	return 0;
}
