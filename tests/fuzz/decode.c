/* SPDX-License-Identifier: MIT */
/* Fuzz targets: JPEGs, their levels, and PNGs. The checksums of PNGs are
 * corrected, because the decoder rejects most mutations without that. Either
 * the decoder refuses a header with a message, or it decodes some of the
 * pixels. A decoder that has decoded other files must give the same result for
 * the same bytes. */
#include <errno.h>
#include <string.h>

#include "../unit/jpeg_fixture.h"
#include "../unit/png_fixture.h"
#include "common/base/hash.h"
#include "common/format/jpeg_levels.h"
#include "fuzz.h"
#include "loader/image/decode.h"

static const struct decode_limits limits = {
	.max_pixels = 1 << 18,
	.max_memory_bytes = 4 << 20,
	.max_scans = 20,
};

static struct decoder *used;

static void free_used(void)
{
	decoder_free(used);
}

static int check(int rc, const struct error *err)
{
	FUZZ_MUST(rc == 0 || err->msg[0] != '\0');
	FUZZ_MUST(rc == 0 || rc == -EBADMSG || rc == -EMEDIUMTYPE ||
		rc == -E2BIG);
	return rc;
}

/* Choose a region by bytes of the input. */
static struct rect region_of(
	const struct image_info *info, const uint8_t *data, size_t size)
{
	uint64_t state = hash64(data, size, 0);
	struct rect r;

	r.width = 1 + jpeg_below(&state, info->width);
	r.height = 1 + jpeg_below(&state, info->height);
	r.x = jpeg_below(&state, info->width - r.width + 1);
	r.y = jpeg_below(&state, info->height - r.height + 1);
	return r;
}

/* Decode the region as a mask of ids. */
static void decode_mask(struct decoder *d, const uint8_t *data, size_t size,
	const struct image_info *info, const struct rect *r)
{
	size_t bytes;
	struct error err = {""};
	struct image out;
	int rc;

	bytes = decode_ids_layout(info, r, &out);
	out.data = malloc(bytes);
	FUZZ_MUST(out.data);
	rc = check(decode_ids(d, data, size, info, &out, &err), &err);
	FUZZ_MUST((rc == 0) == (info->orientation == 1));
	free(out.data);
}

static int decode(
	struct decoder *d, const uint8_t *data, size_t size, uint64_t *hash)
{
	struct image_info info;
	struct error err = {""};
	struct image out;
	struct rect r;
	size_t bytes;
	int rc;

	*hash = 0;
	rc = check(decode_probe(d, data, size, &info, &err), &err);
	if (rc < 0)
		return rc;
	FUZZ_MUST((uint64_t)info.width * info.height <= limits.max_pixels);
	FUZZ_MUST(info.orientation >= 1 && info.orientation <= 8);
	r = region_of(&info, data, size);
	bytes = decode_layout(&info, &r, 1U << size % 4, &out);
	out.data = calloc(1, bytes);
	FUZZ_MUST(out.data);
	rc = check(decode_region(d, data, size, &info, &out, &err), &err);
	if (rc == 0)
		*hash = hash64(out.data, bytes, 1);
	free(out.data);
	if (rc == 0 && info.id_bytes)
		decode_mask(d, data, size, &info, &r);
	return rc;
}

static void one(const uint8_t *data, size_t size)
{
	uint64_t a, b;
	struct decoder *fresh;
	int rc;

	if (!used) {
		FUZZ_MUST(decoder_new(&used, &limits) == 0);
		(void)atexit(free_used);
	}
	FUZZ_MUST(decoder_new(&fresh, &limits) == 0);
	rc = decode(fresh, data, size, &a);
	FUZZ_MUST(decode(used, data, size, &b) == rc);
	FUZZ_MUST(a == b);
	decoder_free(fresh);
}

static size_t seed(unsigned i, uint8_t *buf)
{
	struct jpeg_file f;

	if (i >= JPEG_KINDS)
		return 0;
	f = jpeg_make(&jpeg_kinds[i], 25 + i % 3, 21 - i % 4, i % 9, i, true);
	FUZZ_MUST(f.bytes <= FUZZ_MAX_BYTES);
	memcpy(buf, f.data, f.bytes);
	free(f.data);
	return f.bytes;
}

const struct fuzz_target fuzz_decode = {"decode", one, seed};

/* The levels of any bytes lie inside them, and the one that lacks more bits is
 * not longer. */
static void levels_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* ASan sees its end */
	uint64_t end[JPEG_DROP_BITS_MAX];

	FUZZ_MUST(copy);
	memcpy(copy, data, size);
	jpeg_levels(copy, size, end);
	FUZZ_MUST(end[0] <= size && end[1] <= size);
	FUZZ_MUST(end[0] == 0 || (end[1] > 0 && end[1] <= end[0]));
	FUZZ_MUST(end[0] == 0 || copy[end[0]] == 0xff);
	free(copy);
}

const struct fuzz_target fuzz_levels = {"levels", levels_one, seed};

static void png_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1), *p = copy;
	size_t left = size;

	FUZZ_MUST(copy);
	memcpy(copy, data, size);
	for (p += 8; left >= 8 + 12; left -= 12) {
		uint32_t n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
			(uint32_t)p[2] << 8 | p[3];

		if (n > left - 8 - 12)
			break;
		png_be32(p + 8 + n, png_crc_of(p + 4, 4 + (size_t)n));
		p += 12 + n;
		left -= n;
	}
	one(copy, size);
	free(copy);
}

static size_t png_seed(unsigned i, uint8_t *buf)
{
	struct png_file f;
	size_t bytes;

	if (i >= PNG_KINDS)
		return 0;
	f = png_make(&png_kinds[i], 11 + i % 3, 9 - i % 4, i);
	bytes = f.bytes;
	FUZZ_MUST(bytes <= FUZZ_MAX_BYTES);
	memcpy(buf, f.data, bytes);
	png_drop(&f);
	return bytes;
}

const struct fuzz_target fuzz_png = {"png", png_one, png_seed};
