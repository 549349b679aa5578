/* SPDX-License-Identifier: MIT */
/* Tests of PNG decoding. For each kind of file and each region, the pixels must
 * equal those that PIL makes of the whole image (see png_fixture.h). Damaged
 * and enormous files are refused with a message. Decoding stays within the
 * memory that the check of the header has announced. */
#include <errno.h>

#include "common/base/cleanup.h"
#include "loader/image/decode.h"
#include "loader/image/png_lib_impl.h"
#include "png_fixture.h"
#include "suite.h"

#ifdef HAVE_SPNG_H
#include <spng.h>

_Static_assert(SPNG_VERSION_MAJOR == 0, "another ABI than is declared");
_Static_assert((int)PNG_LIB_EMEM == SPNG_EMEM && (int)PNG_LIB_EOI == SPNG_EOI &&
		(int)PNG_LIB_IO_EOF == SPNG_IO_EOF &&
		(int)PNG_LIB_RAW == SPNG_FMT_RAW &&
		(int)PNG_LIB_ROWS == SPNG_DECODE_PROGRESSIVE &&
		(int)PNG_LIB_NO_CRC == SPNG_CRC_USE,
	"declared as in spng.h");
#define IS_TYPE(member, function)                                              \
	_Static_assert(_Generic(((struct png_lib *)0)->member,                 \
			       __typeof__(&function) : 1, default : 0),        \
		"declared as in spng.h")
IS_TYPE(ctx_new, spng_ctx_new);
IS_TYPE(ctx_free, spng_ctx_free);
IS_TYPE(set_png_stream, spng_set_png_stream);
IS_TYPE(set_crc_action, spng_set_crc_action);
IS_TYPE(decode_image, spng_decode_image);
IS_TYPE(decode_scanline, spng_decode_scanline);
IS_TYPE(strerror, spng_strerror);
#endif

#define CROPS 30 /* number of regions of each file */
#define GUARD 0xa5

static struct decode_limits limits;
static struct decoder *decoder;
static struct error err;

static void setup(void)
{
	limits = (struct decode_limits){
		.max_pixels = 200000000,
		.max_memory_bytes = (uint64_t)1 << 30,
		.max_scans = 100,
	};
	ck_assert_int_eq(decoder_new(&decoder, &limits), 0);
}

static void teardown(void)
{
	decoder_free(decoder);
}

static void expect(int rc, int want, const char *part)
{
	ck_assert_msg(rc == want, "%d instead of %d: %s", rc, want, err.msg);
	ck_assert_msg(strstr(err.msg, part), "no '%s' in '%s'", part, err.msg);
}

/* Returns the stored pixel that is pixel (x, y) of the upright image. */
static const uint8_t *stored_pixel(const struct png_file *f, unsigned o,
	uint32_t width, uint32_t height, uint32_t x, uint32_t y)
{
	uint32_t stored = o >= 5 ? height : width;

	if (o == 2 || o == 3 || o == 6 || o == 7)
		x = width - 1 - x;
	if (o == 3 || o == 4 || o == 7 || o == 8)
		y = height - 1 - y;
	if (o >= 5)
		return f->rgb + ((size_t)x * stored + y) * 3;
	return f->rgb + ((size_t)y * stored + x) * 3;
}

static void check_pixels(const char *name, const struct png_file *f,
	const struct image_info *info, const struct image *out)
{
	for (uint32_t y = 0; y < out->height; y++)
		for (uint32_t x = 0; x < out->width; x++) {
			const uint8_t *want =
				stored_pixel(f, info->orientation, info->width,
					info->height, out->x + x, out->y + y);
			const uint8_t *got =
				out->data + y * out->stride_bytes + x * 3;

			ck_assert_msg(memcmp(want, got, 3) == 0,
				"%s: (%u, %u) of %u x %u + %u + %u: %u %u %u "
				"instead of %u %u %u",
				name, x, y, out->width, out->height, out->x,
				out->y, got[0], got[1], got[2], want[0],
				want[1], want[2]);
		}
}

static struct rect draw_rect(uint64_t *state, uint32_t width, uint32_t height)
{
	struct rect r;

	r.width = 1 + png_draw(state) % width;
	r.height = 1 + png_draw(state) % height;
	r.x = png_draw(state) % (width - r.width + 1);
	r.y = png_draw(state) % (height - r.height + 1);
	return r;
}

static void check_region(const struct png_kind *kind, const struct png_file *f,
	const struct image_info *info, const struct rect *r, unsigned denom)
{
	CLEANUP_FREE uint8_t *memory = NULL;
	struct image out;
	size_t bytes = decode_layout(info, r, denom, &out);

	ck_assert_uint_eq(out.denom, 1);
	ck_assert_uint_eq(out.x, r->x);
	ck_assert_uint_eq(out.height, r->height);
	memory = malloc(bytes + 64);
	ck_assert_ptr_nonnull(memory);
	memset(memory, GUARD, bytes + 64);
	out.data = memory;
	/* The decoder may be another one than the decoder that has probed the
	 * image. */
	decoder_trim(decoder);
	ck_assert_int_eq(
		decode_region(decoder, f->data, f->bytes, info, &out, &err), 0);
	check_pixels(kind->name, f, info, &out);
	for (size_t i = bytes; i < bytes + 64; i++)
		ck_assert_uint_eq(memory[i], GUARD);
}

/* For a file of each kind and some sizes, decode the whole image and parts of
 * it. */
START_TEST(test_regions_are_those_of_the_whole)
{
	static const uint32_t sides[][2] = {
		{1, 1}, {2, 3}, {5, 1}, {1, 9}, {61, 47}, {130, 21}};
	const struct png_kind *kind = &png_kinds[_i];
	uint64_t state = (uint64_t)_i;

	for (size_t s = 0; s < sizeof(sides) / sizeof(sides[0]); s++) {
		uint32_t w = sides[s][0], h = sides[s][1];
		struct png_file f = png_make(kind, w, h, 7 * s + 1);
		struct image_info info;
		struct rect all;

		ck_assert_msg(decode_probe(decoder, f.data, f.bytes, &info,
				      &err) == 0,
			"%s: %s", kind->name, err.msg);
		ck_assert_int_eq(info.kind, IMAGE_PNG);
		ck_assert_uint_eq(info.width, kind->orientation >= 5 ? h : w);
		all = (struct rect){0, 0, info.width, info.height};
		check_region(kind, &f, &info, &all, 1);
		for (unsigned i = 0; i < CROPS; i++) {
			struct rect r =
				draw_rect(&state, info.width, info.height);

			check_region(kind, &f, &info, &r, 1U << i % 4);
		}
		png_drop(&f);
	}
}
END_TEST

START_TEST(test_orientation_can_be_ignored)
{
	const struct png_kind turned = {
		.name = "turned", .color = 2, .depth = 8, .orientation = 6};
	struct png_file f = png_make(&turned, 20, 10, 1);
	struct image_info info;
	struct rect all = {0, 0, 20, 10};

	teardown();
	limits.ignore_orientation = true;
	ck_assert_int_eq(decoder_new(&decoder, &limits), 0);
	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, &err), 0);
	ck_assert_uint_eq(info.width, 20);
	check_region(&turned, &f, &info, &all, 1);
	png_drop(&f);
}
END_TEST

/* -- Masks ----------------------------------------------------------------- */

static unsigned id_of(const uint8_t *p, unsigned bytes)
{
	uint16_t wide;

	if (bytes == 1)
		return *p;
	memcpy(&wide, p, sizeof(wide));
	return wide;
}

static void check_ids(const struct png_kind *kind, const struct png_file *f,
	const struct image_info *info, const struct rect *r)
{
	CLEANUP_FREE uint8_t *memory = NULL;
	struct image out;
	size_t bytes = decode_ids_layout(info, r, &out);

	memory = malloc(bytes + 64);
	ck_assert_ptr_nonnull(memory);
	memset(memory, GUARD, bytes + 64);
	out.data = memory;
	ck_assert_int_eq(
		decode_ids(decoder, f->data, f->bytes, info, &out, &err), 0);
	for (uint32_t y = 0; y < r->height; y++)
		for (uint32_t x = 0; x < r->width; x++)
			ck_assert_msg(id_of(memory + y * out.stride_bytes +
						      x * info->id_bytes,
					      info->id_bytes) ==
					f->samples[(r->y + y) * info->width +
						r->x + x],
				"%s: id at (%u, %u)", kind->name, x, y);
	for (size_t i = bytes; i < bytes + 64; i++)
		ck_assert_uint_eq(memory[i], GUARD);
}

START_TEST(test_ids_of_masks_are_kept)
{
	const struct png_kind *kind = &png_kinds[_i];
	struct png_file f = png_make(kind, 61, 47, 3);
	struct rect all = {0, 0, 61, 47};
	struct image_info info;
	struct image out = {.denom = 1};
	uint64_t state = 5;

	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, &err), 0);
	ck_assert_uint_eq(info.id_bytes,
		kind->color % 3 || kind->color == 6 ? 0
			: kind->depth == 16	    ? 2
						    : 1);
	if (!info.id_bytes || kind->orientation) {
		expect(decode_ids(decoder, f.data, f.bytes, &info, &out, &err),
			-EMEDIUMTYPE, "a mask must be");
	} else {
		check_ids(kind, &f, &info, &all);
		for (unsigned i = 0; i < CROPS; i++) {
			struct rect r = draw_rect(&state, 61, 47);

			check_ids(kind, &f, &info, &r);
		}
	}
	png_drop(&f);
}
END_TEST

/* -- Damage ---------------------------------------------------------------- */

/* Decode the top left quarter. Returns 0 or the error. */
static int decode_quarter(const void *data, size_t bytes)
{
	CLEANUP_FREE uint8_t *memory = NULL;
	struct image_info info;
	struct image out;
	struct rect r = {0, 0, 0, 0};
	int rc;

	err.msg[0] = '\0';
	rc = decode_probe(decoder, data, bytes, &info, &err);
	if (rc < 0)
		return rc;
	r.width = (info.width + 1) / 2;
	r.height = (info.height + 1) / 2;
	memory = malloc(decode_layout(&info, &r, 1, &out));
	ck_assert_ptr_nonnull(memory);
	out.data = memory;
	return decode_region(decoder, data, bytes, &info, &out, &err);
}

static uint8_t *png_copy(const void *data, size_t bytes)
{
	uint8_t *p = malloc(bytes ? bytes : 1);

	ck_assert_ptr_nonnull(p);
	memcpy(p, data, bytes);
	return p;
}

START_TEST(test_a_png_that_is_cut_anywhere_is_refused)
{
	struct png_file f = png_make(&png_kinds[_i], 30, 20, 1);

	ck_assert_int_eq(decode_quarter(f.data, f.bytes), 0);
	for (size_t n = 8; n < f.bytes; n += 1 + n / 50) {
		CLEANUP_FREE uint8_t *cut = png_copy(f.data, n);

		expect(decode_quarter(cut, n), -EBADMSG, "truncated");
	}
	png_drop(&f);
}
END_TEST

/* Damage is found anywhere in the file, even below the decoded part. */
START_TEST(test_any_byte_that_is_changed_is_seen)
{
	struct png_file f = png_make(&png_kinds[_i], 30, 20, 1);

	for (size_t i = 8; i < f.bytes; i++) {
		int rc;

		f.data[i] ^= (uint8_t)(1 << i % 8);
		rc = decode_quarter(f.data, f.bytes);
		ck_assert_msg(rc == -EBADMSG || rc == -EMEDIUMTYPE,
			"byte %zu: %d: %s", i, rc, err.msg);
		ck_assert_int_ne(err.msg[0], '\0');
		f.data[i] ^= (uint8_t)(1 << i % 8);
	}
	png_drop(&f);
}
END_TEST

START_TEST(test_bytes_behind_the_end_do_no_harm)
{
	struct png_file f = png_make(&png_kinds[5], 30, 20, 1);

	png_add(&f, "and more", 8);
	ck_assert_int_eq(decode_quarter(f.data, f.bytes), 0);
	png_drop(&f);
}
END_TEST

/* A file of chunks with the right CRC. */
struct made_chunk {
	const char *type, *data;
	uint32_t bytes;
};

static int decode_chunks(const struct made_chunk *c)
{
	struct png_file f = {.bytes = 0};
	int rc;

	png_add(&f, "\x89PNG\r\n\x1a\n", 8);
	for (; c->type; c++)
		png_add_chunk(&f, c->type, c->data, c->bytes);
	rc = decode_quarter(f.data, f.bytes);
	png_drop(&f);
	return rc;
}

#define HEAD(w, h, depth, color)                                               \
	{                                                                      \
		"IHDR", "\0\0" w "\0\0" h depth color "\0\0\0", 13             \
	}
#define STOP                                                                   \
	{"IEND", "", 0},                                                       \
	{                                                                      \
		NULL, NULL, 0                                                  \
	}

START_TEST(test_chunks_out_of_place_are_refused)
{
	static const struct made_chunk first[] = {
		{"IDAT", "", 0}, HEAD("\0\1", "\0\1", "\10", "\0"), STOP};
	static const struct made_chunk none[] = {
		HEAD("\0\1", "\0\1", "\10", "\0"), STOP};
	static const struct made_chunk twice[] = {
		HEAD("\0\1", "\0\1", "\10", "\0"),
		HEAD("\0\1", "\0\1", "\10", "\0"), STOP};
	static const struct made_chunk split[] = {
		HEAD("\0\1", "\0\1", "\10", "\0"), {"IDAT", "", 0},
		{"tEXt", "", 0}, {"IDAT", "", 0}, STOP};
	static const struct made_chunk colourless[] = {
		HEAD("\0\1", "\0\1", "\10", "\3"), {"IDAT", "", 0}, STOP};
	static const struct made_chunk late[] = {
		HEAD("\0\1", "\0\1", "\10", "\3"), {"IDAT", "", 0},
		{"PLTE", "abc", 3}, STOP};
	static const struct made_chunk odd[] = {
		HEAD("\0\1", "\0\1", "\10", "\3"), {"PLTE", "abcd", 4}, STOP};
	static const struct made_chunk apple[] = {
		{"CgBI", "", 0}, HEAD("\0\1", "\0\1", "\10", "\0"), STOP};
	static const struct made_chunk unknown[] = {
		HEAD("\0\1", "\0\1", "\10", "\0"), {"ABCD", "", 0}, STOP};
	static const struct made_chunk depth[] = {
		HEAD("\0\1", "\0\1", "\3", "\0"), {"IDAT", "", 0}, STOP};
	static const struct made_chunk flat[] = {
		HEAD("\0\0", "\0\1", "\10", "\0"), {"IDAT", "", 0}, STOP};
	static const struct made_chunk empty[] = {
		HEAD("\0\1", "\0\1", "\10", "\0"), {"IDAT", "", 0}, STOP};

	expect(decode_chunks(first), -EBADMSG, "header");
	expect(decode_chunks(none), -EBADMSG, "no pixels");
	expect(decode_chunks(twice), -EBADMSG, "chunk");
	expect(decode_chunks(split), -EBADMSG, "one piece");
	expect(decode_chunks(colourless), -EBADMSG, "no palette");
	expect(decode_chunks(late), -EBADMSG, "out of place");
	expect(decode_chunks(odd), -EBADMSG, "a palette of 4 bytes");
	expect(decode_chunks(apple), -EBADMSG, "header");
	expect(decode_chunks(unknown), -EMEDIUMTYPE, "unknown kind");
	expect(decode_chunks(depth), -EMEDIUMTYPE, "depth 3");
	expect(decode_chunks(flat), -EBADMSG, "0 x 1");
	expect(decode_chunks(empty), -EBADMSG, "damaged: ");
}
END_TEST

/* -- Bombs ----------------------------------------------------------------- */

/* Write a header with these values, and a valid stream of some bytes. */
static int decode_bomb(const struct png_kind *kind, uint32_t width,
	uint32_t height, uint32_t idat_bytes)
{
	CLEANUP_FREE uint8_t *idat = calloc(1, idat_bytes);
	struct png_file f = {.bytes = 0};
	uint8_t ihdr[13] = {0};
	int rc;

	png_add(&f, "\x89PNG\r\n\x1a\n", 8);
	png_be32(ihdr, width);
	png_be32(ihdr + 4, height);
	ihdr[8] = kind->depth;
	ihdr[9] = kind->color;
	ihdr[12] = kind->interlaced;
	png_add_chunk(&f, "IHDR", ihdr, sizeof(ihdr));
	png_add_chunk(&f, "IDAT", idat, idat_bytes);
	png_add_chunk(&f, "IEND", "", 0);
	rc = decode_quarter(f.data, f.bytes);
	png_drop(&f);
	return rc;
}

START_TEST(test_a_bomb_is_refused_by_its_header)
{
	const struct png_kind wide = {.color = 6, .depth = 16};
	const struct png_kind bits = {.color = 0, .depth = 1};

	/* 10^9 pixels of one bit fit into 1 MB of deflate. */
	expect(decode_bomb(&bits, 31623, 31623, 1 << 20), -E2BIG,
		"over the limit of 200000000");
	expect(decode_bomb(&wide, INT32_MAX, INT32_MAX, 100), -E2BIG,
		"over the limit");
	expect(decode_bomb(&wide, 14000, 14000, 1000), -EBADMSG,
		"1000 bytes cannot hold");
	/* A row of this image alone is larger than all the memory. */
	expect(decode_bomb(&wide, 150000000, 1, 2000000), -E2BIG,
		"over the limit of 1073741824");
	expect(decode_bomb(&bits, UINT32_MAX, 1, 100), -EBADMSG, "damaged");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("png");
	TCase *tc = case_with(s, "regions", setup, teardown);

	tcase_add_loop_test(
		tc, test_regions_are_those_of_the_whole, 0, PNG_KINDS);
	tcase_add_test(tc, test_orientation_can_be_ignored);
	tcase_add_loop_test(tc, test_ids_of_masks_are_kept, 0, PNG_KINDS);
	tc = case_with(s, "damage", setup, teardown);
	tcase_add_loop_test(
		tc, test_a_png_that_is_cut_anywhere_is_refused, 0, PNG_KINDS);
	tcase_add_loop_test(
		tc, test_any_byte_that_is_changed_is_seen, 0, PNG_KINDS);
	tcase_add_test(tc, test_bytes_behind_the_end_do_no_harm);
	tcase_add_test(tc, test_chunks_out_of_place_are_refused);
	tcase_add_test(tc, test_a_bomb_is_refused_by_its_header);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
