/* SPDX-License-Identifier: MIT */
/*
 * Reads the orientation from EXIF data, which is a TIFF header and entries of
 * twelve bytes, in either byte order. Every offset is checked. Damaged data is
 * treated as data without an orientation. Any thread; no state.
 */
#include <string.h>

#include "loader/image/decode_impl.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define TYPE_LONG 4
#define ENTRY_BYTES ((size_t)12)

struct tiff {
	const uint8_t *data;
	size_t bytes;
	bool big_endian;
};

/* Read a number of 16 bits. The caller has checked that both bytes exist. */
static uint32_t get16(const struct tiff *t, size_t at)
{
	const uint8_t *p = t->data + at;

	return t->big_endian ? (uint32_t)p[0] << 8 | p[1]
			     : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t get32(const struct tiff *t, size_t at)
{
	return t->big_endian ? get16(t, at) << 16 | get16(t, at + 2)
			     : get16(t, at + 2) << 16 | get16(t, at);
}

static uint8_t entry_value(const struct tiff *t, size_t at)
{
	uint32_t type = get16(t, at + 2), value;

	if (get32(t, at + 4) != 1 || (type != TYPE_SHORT && type != TYPE_LONG))
		return 0;
	value = type == TYPE_SHORT ? get16(t, at + 8) : get32(t, at + 8);
	return value >= 1 && value <= 8 ? (uint8_t)value : 0;
}

static uint8_t directory_orientation(const struct tiff *t, size_t at)
{
	size_t count;

	if (at > t->bytes - 2)
		return 0;
	count = get16(t, at);
	at += 2;
	for (; count > 0 && t->bytes - at >= ENTRY_BYTES; count--) {
		if (get16(t, at) == TAG_ORIENTATION)
			return entry_value(t, at);
		at += ENTRY_BYTES;
	}
	return 0;
}

uint8_t tiff_orientation(const uint8_t *data, size_t bytes)
{
	struct tiff t = {.data = data, .bytes = bytes};

	if (bytes < 8)
		return 0;
	if (memcmp(t.data, "MM\0*", 4) == 0)
		t.big_endian = true;
	else if (memcmp(t.data, "II*\0", 4) == 0)
		t.big_endian = false;
	else
		return 0;
	return directory_orientation(&t, get32(&t, 4));
}

uint8_t exif_orientation(const uint8_t *data, size_t bytes)
{
	if (bytes < 6 || memcmp(data, "Exif\0\0", 6) != 0)
		return 0;
	return tiff_orientation(data + 6, bytes - 6);
}
