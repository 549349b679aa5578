/* SPDX-License-Identifier: MIT */
/* Writes PNGs without a library. Each row is stored as the differences to the
 * row above, so most bytes are 0. The only matches for deflate are repetitions
 * of the last byte, in the fixed codes of RFC 1951. */
#include "mask_png.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

#define MATCH_LEAST 3
#define MATCH_MOST 258
#define ADLER_BASE 65521u

struct bit_out {
	struct array *to;
	/* bits that were not written yet; the lowest is the first */
	uint32_t bits;
	unsigned count;
	bool failed;
};

static void put_bytes(struct bit_out *o, const void *data, size_t bytes)
{
	void *to = array_grow(o->to, bytes);

	o->failed |= !to;
	if (to)
		memcpy(to, data, bytes);
}

/* Append bits, from the lowest to the highest. Deflate stores numbers so. */
static void put_bits(struct bit_out *o, uint32_t bits, unsigned count)
{
	o->bits |= bits << o->count;
	o->count += count;
	for (; o->count >= 8; o->count -= 8, o->bits >>= 8) {
		uint8_t byte = (uint8_t)o->bits;

		put_bytes(o, &byte, 1);
	}
}

/* Append bits, from the highest to the lowest. Deflate stores codes so. */
static void put_code(struct bit_out *o, uint32_t code, unsigned count)
{
	for (unsigned i = count; i > 0; i--)
		put_bits(o, code >> (i - 1) & 1, 1);
}

/* Append a symbol: a byte, the end of the data (256), or the code of a length
 * (257 or more). */
static void put_symbol(struct bit_out *o, unsigned symbol)
{
	if (symbol < 144)
		put_code(o, 0x30 + symbol, 8);
	else if (symbol < 256)
		put_code(o, 0x190 + symbol - 144, 9);
	else if (symbol < 280)
		put_code(o, symbol - 256, 7);
	else
		put_code(o, 0xc0 + symbol - 280, 8);
}

/* Append a repetition of the last byte. `length` is 3 to 258. */
static void put_match(struct bit_out *o, unsigned length)
{
	unsigned extra = 0, base = MATCH_LEAST, symbol = 257;

	if (length == MATCH_MOST) {
		put_symbol(o, 285);
		put_code(o, 0, 5); /* the code for distance 1 */
		return;
	}
	/* Lengths from 3 on have eight codes without extra bits, then four
	 * codes for each number of extra bits. */
	while (length >= base + (1U << extra)) {
		base += 1U << extra;
		symbol++;
		if (symbol >= 265)
			extra = (symbol - 261) / 4;
	}
	put_symbol(o, symbol);
	put_bits(o, length - base, extra);
	put_code(o, 0, 5);
}

static void put_run(struct bit_out *o, uint8_t byte, size_t length)
{
	put_symbol(o, byte);
	for (length--; length >= MATCH_LEAST;) {
		size_t n = length < MATCH_MOST ? length : MATCH_MOST;

		put_match(o, (unsigned)n);
		length -= n;
	}
	while (length-- > 0)
		put_symbol(o, byte);
}

/* -- The image ------------------------------------------------------------- */

static void store_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Returns the rows to compress. Each row begins with the number of its filter,
 * 2, which means differences to the row above. */
static uint8_t *differences(
	const uint8_t *ids, uint32_t width, uint32_t height, size_t *bytes)
{
	size_t row = (size_t)width + 1;
	uint8_t *to = malloc(row * height);

	*bytes = row * height;
	for (uint32_t y = 0; to && y < height; y++) {
		const uint8_t *now = ids + (size_t)y * width;
		const uint8_t *above = y ? now - width : NULL;

		to[y * row] = 2;
		for (uint32_t x = 0; x < width; x++)
			to[y * row + 1 + x] =
				(uint8_t)(now[x] - (above ? above[x] : 0));
	}
	return to;
}

static void put_stream(struct bit_out *o, const uint8_t *data, size_t bytes)
{
	uint32_t a = 1, b = 0;
	uint8_t sum[4];

	put_bytes(o, "\x78\x01", 2);
	/* the header of the last block, with fixed codes */
	put_bits(o, 1 | 1 << 1, 3);
	for (size_t i = 0, n; i < bytes; i += n) {
		for (n = 1; i + n < bytes && data[i + n] == data[i];)
			n++;
		put_run(o, data[i], n);
	}
	put_symbol(o, 256);
	put_bits(o, 0, (8 - o->count % 8) % 8);
	for (size_t i = 0; i < bytes; i++) {
		a = (a + data[i]) % ADLER_BASE;
		b = (b + a) % ADLER_BASE;
	}
	store_be32(sum, b << 16 | a);
	put_bytes(o, sum, sizeof(sum));
}

static uint32_t mask_crc(const uint8_t *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ UINT32_C(0xedb88320) : c >> 1;
	}
	return ~c;
}

static void put_chunk(
	struct bit_out *o, const char *type, const void *data, size_t bytes)
{
	uint8_t word[4];
	size_t at;

	store_be32(word, (uint32_t)bytes);
	put_bytes(o, word, 4);
	at = array_bytes(o->to);
	put_bytes(o, type, 4);
	if (bytes > 0)
		put_bytes(o, data, bytes);
	if (o->failed)
		return;
	store_be32(word,
		mask_crc((const uint8_t *)array_data(o->to) + at, 4 + bytes));
	put_bytes(o, word, 4);
}

uint8_t *mask_png(
	const uint8_t *ids, uint32_t width, uint32_t height, size_t *bytes)
{
	struct array file = {.data = NULL}, stream = {.data = NULL};
	struct bit_out o = {.to = &file}, z = {.to = &stream};
	uint8_t ihdr[13] = {0}, *rows;
	size_t row_bytes;

	rows = differences(ids, width, height, &row_bytes);
	if (rows)
		put_stream(&z, rows, row_bytes);
	store_be32(ihdr, width);
	store_be32(ihdr + 4, height);
	ihdr[8] = 8; /* 8 bits per pixel; the colour type stays 0, grey */
	put_bytes(&o, "\x89PNG\r\n\x1a\n", 8);
	put_chunk(&o, "IHDR", ihdr, sizeof(ihdr));
	put_chunk(&o, "IDAT", array_data(&stream), array_bytes(&stream));
	put_chunk(&o, "IEND", NULL, 0);
	if (!rows || z.failed || o.failed)
		array_release(&file);
	free(rows);
	array_release(&stream);
	*bytes = array_bytes(&file);
	return array_data(&file);
}
