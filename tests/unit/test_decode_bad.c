/* SPDX-License-Identifier: MIT */
/*
 * Tests of JPEG decoding of bad files: cut off, corrupt, of another format, or
 * with enormous dimensions. Each gives an error with a message, which does not
 * depend on earlier calls.
 */
#include <errno.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "loader/image/decode.h"
#include "jpeg_fixture.h"
#include "suite.h"

#define MUTATIONS 3000

static struct decode_limits limits;
static struct decoder *decoder;
static struct error err;

static const struct jpeg_kind *kind_named(const char *name)
{
	for (size_t i = 0; i < JPEG_KINDS; i++)
		if (strcmp(jpeg_kinds[i].name, name) == 0)
			return &jpeg_kinds[i];
	ck_abort_msg("no %s", name);
}

static void renew(void)
{
	decoder_free(decoder);
	ck_assert_int_eq(decoder_new(&decoder, &limits), 0);
}

static void setup(void)
{
	limits = (struct decode_limits){
		.max_pixels = 200000000,
		.max_memory_bytes = (uint64_t)1 << 30,
		.max_scans = 50,
	};
	decoder = NULL;
	renew();
}

static void teardown(void)
{
	decoder_free(decoder);
}

/* Decode the lower right quarter at a scale. Returns 0 or the error. */
static int decode_part(const void *data, size_t bytes, unsigned denom)
{
	CLEANUP_FREE uint8_t *memory = NULL;
	struct image_info info;
	struct image out;
	struct rect r;
	int rc;

	err.msg[0] = '\0';
	rc = decode_probe(decoder, data, bytes, &info, &err);
	if (rc < 0)
		return rc;
	r.x = info.width / 2;
	r.y = info.height / 2;
	r.width = info.width - r.x;
	r.height = info.height - r.y;
	memory = malloc(decode_layout(&info, &r, denom, &out));
	ck_assert_ptr_nonnull(memory);
	out.data = memory;
	return decode_region(decoder, data, bytes, &info, &out, &err);
}

static void expect(int rc, int want, const char *part)
{
	ck_assert_msg(rc == want, "%d instead of %d: %s", rc, want, err.msg);
	ck_assert_msg(strstr(err.msg, part), "no '%s' in '%s'", part, err.msg);
}

static void expect_failure(int rc)
{
	ck_assert_msg(rc == -EBADMSG || rc == -EMEDIUMTYPE || rc == -E2BIG,
		"%d: %s", rc, err.msg);
	ck_assert_int_ne(err.msg[0], '\0');
}

/* Returns a copy in memory of exactly its size, so that a sanitizer sees reads
 * beyond it. */
static uint8_t *copy_of(const void *data, size_t bytes)
{
	uint8_t *p = malloc(bytes ? bytes : 1);

	ck_assert_ptr_nonnull(p);
	memcpy(p, data, bytes);
	return p;
}

/* -- Something else -------------------------------------------------------- */

START_TEST(test_what_is_no_jpeg_is_told_apart_from_damage)
{
	static const char gif[] = "GIF89a\1\0\1\0";
	static const char html[] = "<!DOCTYPE html><title>404</title>";
	static const char one[] = "\xff";
	char zeros[4096] = {0};

	expect(decode_part("", 0, 1), -EMEDIUMTYPE, "empty");
	expect(decode_part(gif, sizeof(gif), 1), -EMEDIUMTYPE, "Not a JPEG");
	expect(decode_part(html, sizeof(html), 1), -EMEDIUMTYPE, "Not a JPEG");
	expect(decode_part(zeros, sizeof(zeros), 1), -EMEDIUMTYPE,
		"Not a JPEG");
	expect(decode_part(one, 1, 1), -EBADMSG, "truncated");
}
END_TEST

/* Returns the byte after the marker of the first frame header. */
static uint8_t *frame_of(struct jpeg_file *f)
{
	for (size_t i = 2; i + 1 < f->bytes; i++)
		if (f->data[i] == 0xff && f->data[i + 1] >= 0xc0 &&
			f->data[i + 1] <= 0xc2)
			return f->data + i + 2;
	ck_abort_msg("no frame header");
}

START_TEST(test_kinds_that_are_not_decoded_are_named)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[0], 40, 40, 0, 1, true);
	uint8_t *frame = frame_of(&f);

	frame[2] = 12; /* 12 bits per sample */
	expect(decode_part(f.data, f.bytes, 1), -EMEDIUMTYPE, "precision 12");
	frame[2] = 8;
	frame[-1] = 0xc3; /* a lossless file */
	expect(decode_part(f.data, f.bytes, 1), -EMEDIUMTYPE, "0xc3");
	free(f.data);
}
END_TEST

/* -- Cut off --------------------------------------------------------------- */

START_TEST(test_file_that_is_cut_anywhere_is_refused)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[_i], 90, 70, 6, 8, true);

	ck_assert_int_eq(decode_part(f.data, f.bytes, 1), 0);
	for (size_t n = 0; n < f.bytes; n += 1 + n / 100) {
		CLEANUP_FREE uint8_t *cut = copy_of(f.data, n);

		expect_failure(decode_part(cut, n, 1));
	}
	expect(decode_part(f.data, f.bytes - 1, 2), -EBADMSG, "truncated");
	expect(decode_part(f.data, f.bytes - 2, 2), -EBADMSG, "truncated");
	ck_assert_int_eq(decode_part(f.data, f.bytes, 4), 0);
	free(f.data);
}
END_TEST

/* The result is the same for every part of the image. */
START_TEST(test_cut_file_is_refused_for_a_region_above_the_cut)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 90, 70, 0, 8, true);
	struct image_info info;
	uint8_t memory[90 * 70 * 3];
	struct image out;

	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, NULL), 0);
	(void)decode_layout(&info, &(struct rect){0, 0, 8, 8}, 1, &out);
	out.data = memory;
	ck_assert_int_eq(
		decode_region(decoder, f.data, f.bytes, &info, &out, &err), 0);
	expect(decode_region(decoder, f.data, f.bytes - 2, &info, &out, &err),
		-EBADMSG, "truncated");
	free(f.data);
}
END_TEST

START_TEST(test_lower_part_of_zeros_is_refused)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[_i], 90, 70, 0, 8, true);

	memset(f.data + f.bytes - f.bytes / 3, 0, f.bytes / 3);
	expect(decode_part(f.data, f.bytes, 1), -EBADMSG, "truncated");
	free(f.data);
}
END_TEST

START_TEST(test_bytes_behind_the_end_do_no_harm)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 90, 70, 0, 8, true);
	CLEANUP_FREE uint8_t *more = calloc(1, f.bytes + 5000);

	memcpy(more, f.data, f.bytes);
	memset(more + f.bytes + 4000, 0xff, 1000);
	ck_assert_int_eq(decode_part(more, f.bytes + 5000, 1), 0);
	free(f.data);
}
END_TEST

/* -- Corrupt --------------------------------------------------------------- */

/* Returns a copy of the file with bytes inserted at `at`. */
static uint8_t *insert(
	const struct jpeg_file *f, size_t at, const void *bytes, size_t count)
{
	uint8_t *p = malloc(f->bytes + count);

	ck_assert_ptr_nonnull(p);
	memcpy(p, f->data, at);
	memcpy(p + at, bytes, count);
	memcpy(p + at + count, f->data + at, f->bytes - at);
	return p;
}

/* The file has padding between markers, and an unknown revision and colour
 * transform. */
START_TEST(test_harmless_oddities_are_decoded)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 90, 70, 0, 8, true);
	size_t behind_jfif = 2 + 2 + 16;
	CLEANUP_FREE uint8_t *padded = insert(&f, behind_jfif, "\0\0\0\0\0", 5);
	CLEANUP_FREE uint8_t *adobe = insert(
		&f, behind_jfif, "\xff\xee\0\016Adobe\0\144\0\0\0\0\7", 16);

	ck_assert_int_eq(decode_part(padded, f.bytes + 5, 1), 0);
	ck_assert_int_eq(decode_part(adobe, f.bytes + 16, 1), 0);
	f.data[11] = 9; /* revision of JFIF */
	ck_assert_int_eq(decode_part(f.data, f.bytes, 1), 0);
	free(f.data);
}
END_TEST

/* libjpeg would make the missing rows grey. */
START_TEST(test_corrupt_rows_are_refused_with_libjpegs_words)
{
	struct jpeg_file f = jpeg_make(kind_named("4:4:4"), 90, 70, 0, 8, true);
	size_t middle = f.bytes * 3 / 5;

	memcpy(f.data + middle, "\xff\xd9", 2);
	expect(decode_part(f.data, f.bytes, 1), -EBADMSG,
		"damaged: Corrupt JPEG data");
	free(f.data);
	f = jpeg_make(kind_named("restarts, 4:2:0"), 90, 70, 0, 8, true);
	for (size_t i = f.bytes / 3; i < f.bytes; i++)
		if (f.data[i] == 0xff && f.data[i + 1] == 0xd1)
			f.data[i + 1] = 0xd3;
	expect(decode_part(f.data, f.bytes, 1), -EBADMSG,
		"damaged: Corrupt JPEG data");
	free(f.data);
}
END_TEST

START_TEST(test_file_that_changed_after_its_header_was_read_is_refused)
{
	struct jpeg_file a = jpeg_make(&jpeg_kinds[2], 90, 70, 0, 8, true);
	struct jpeg_file b = jpeg_make(&jpeg_kinds[2], 70, 90, 0, 8, true);
	struct rect r = {0, 0, 90, 70};
	uint8_t memory[90 * 70 * 3];
	struct image_info info;
	struct image out;

	ck_assert_int_eq(
		decode_probe(decoder, a.data, a.bytes, &info, NULL), 0);
	(void)decode_layout(&info, &r, 1, &out);
	out.data = memory;
	expect(decode_region(decoder, b.data, b.bytes, &info, &out, &err),
		-EBADMSG, "changed");
	out.x = 3;
	expect(decode_region(decoder, a.data, a.bytes, &info, &out, &err),
		-EINVAL, "layout");
	free(a.data);
	free(b.data);
}
END_TEST

/* libjpeg keeps tables from image to image. */
START_TEST(test_file_without_tables_is_not_decoded_with_those_of_another)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 90, 70, 0, 8, true);
	CLEANUP_FREE uint8_t *copy = copy_of(f.data, f.bytes);

	for (size_t i = 0; i + 1 < f.bytes; i++)
		if (copy[i] == 0xff && copy[i + 1] == 0xdb)
			copy[i + 1] = 0xfe; /* a comment */
	ck_assert_int_eq(decode_part(f.data, f.bytes, 1), 0);
	expect(decode_part(copy, f.bytes, 1), -EBADMSG, "Quantization table");
	free(f.data);
}
END_TEST

static void mutate(uint8_t *data, size_t bytes, uint64_t *state)
{
	for (uint32_t n = 1 + jpeg_below(state, 8); n > 0; n--) {
		/* Half of the changes are in the first eighth of the file,
		 * because headers are more fragile than pixels. */
		size_t below = jpeg_below(state, 2) ? bytes : bytes / 8;
		size_t at = jpeg_below(state, (uint32_t)below);

		data[at] = jpeg_below(state, 4)
			? data[at] ^ (uint8_t)(1U << jpeg_below(state, 8))
			: (uint8_t)jpeg_below(state, 256);
	}
}

/* Each damaged file gives 0 or always the same error, and the next file is not
 * affected. */
START_TEST(test_flipped_bytes_do_no_harm)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[_i], 60, 50, 5, 9, true);
	uint64_t state = 77 + (uint64_t)_i;
	unsigned failed = 0;

	limits.max_pixels = 100000;
	limits.max_memory_bytes = (uint64_t)8 << 20;
	renew();
	for (unsigned i = 0; i < MUTATIONS / JPEG_KINDS; i++) {
		CLEANUP_FREE uint8_t *copy = copy_of(f.data, f.bytes);
		unsigned denom = 1U << jpeg_below(&state, 4);
		int rc;

		mutate(copy, f.bytes, &state);
		rc = decode_part(copy, f.bytes, denom);
		if (rc < 0) {
			expect_failure(rc);
			failed++;
		}
		ck_assert_int_eq(decode_part(copy, f.bytes, denom), rc);
	}
	ck_assert_uint_gt(failed, MUTATIONS / JPEG_KINDS / 4);
	ck_assert_int_eq(decode_part(f.data, f.bytes, 1), 0);
	free(f.data);
}
END_TEST

/* -- EXIF ------------------------------------------------------------------ */

static uint8_t orientation_of(const struct jpeg_file *f)
{
	struct image_info info;

	ck_assert_int_eq(
		decode_probe(decoder, f->data, f->bytes, &info, &err), 0);
	return info.orientation;
}

static uint8_t *exif_in(const struct jpeg_file *f)
{
	uint8_t *p = memmem(f->data, f->bytes, "Exif", 4);

	ck_assert_ptr_nonnull(p);
	return p + 6;
}

START_TEST(test_damaged_exif_data_say_nothing)
{
	/* Index and value of a byte to change in the big-endian form. */
	static const uint8_t damage[][2] = {
		{0, 'X'},   /* invalid byte order */
		{3, 0},	    /* invalid magic number */
		{4, 0xff},  /* offset of a directory far beyond the end */
		{7, 27},    /* offset of a directory that ends beyond the end */
		{9, 0},	    /* directory without entries */
		{11, 0x13}, /* another tag */
		{13, 2},    /* type: text */
		{17, 2},    /* two values */
		{19, 0},    /* value out of range */
		{19, 9},
	};
	const uint8_t *d = damage[_i];
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 20, 10, 3, 9, true);

	ck_assert_uint_eq(orientation_of(&f), 3);
	exif_in(&f)[d[0]] = d[1];
	ck_assert_uint_eq(orientation_of(&f), 1);
	free(f.data);
}
END_TEST

START_TEST(test_exif_with_too_many_entries_is_read_to_its_end)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 20, 10, 3, 9, true);
	uint8_t *exif = exif_in(&f);

	exif[8] = 0xff; /* 65281 entries, only the first of which exists */
	ck_assert_uint_eq(orientation_of(&f), 3);
	exif[11] = 0x13;
	ck_assert_uint_eq(orientation_of(&f), 1);
	free(f.data);
}
END_TEST

/* -- Limits ---------------------------------------------------------------- */

static void claim(struct jpeg_file *f, unsigned width, unsigned height)
{
	uint8_t *frame = frame_of(f);

	frame[3] = (uint8_t)(height >> 8);
	frame[4] = (uint8_t)height;
	frame[5] = (uint8_t)(width >> 8);
	frame[6] = (uint8_t)width;
}

START_TEST(test_header_that_claims_more_than_the_file_can_hold_is_refused)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[_i], 8, 8, 0, 9, false);

	claim(&f, 65500, 65500);
	expect(decode_part(f.data, f.bytes, 1), -E2BIG, "over the limit");
	limits.max_pixels = UINT64_MAX;
	limits.max_memory_bytes = UINT64_MAX;
	renew();
	expect(decode_part(f.data, f.bytes, 1), -EBADMSG, "cannot hold");
	claim(&f, 65535, 9);
	expect(decode_part(f.data, f.bytes, 1), -E2BIG, "dimension");
	claim(&f, 9, 0);
	expect(decode_part(f.data, f.bytes, 1), -EBADMSG, "Empty");
	free(f.data);
}
END_TEST

/* All pixels are the same. This file has only one or two bits a block more than
 * the limit. */
START_TEST(test_file_that_compresses_best_is_no_bomb)
{
	static const char *const names[] = {
		"4:2:0", "grey", "progressive, 4:2:0", "arithmetic, 4:2:0"};
	struct jpeg_file f =
		jpeg_make(kind_named(names[_i]), 3000, 2000, 0, 9, false);

	ck_assert_msg(decode_part(f.data, f.bytes, 8) == 0, "%s", err.msg);
	free(f.data);
}
END_TEST

START_TEST(test_limits_are_kept_to_the_pixel_the_byte_and_the_scan)
{
	struct jpeg_file f = jpeg_make(
		kind_named("progressive, 4:2:0"), 100, 80, 0, 9, true);
	struct image_info info;

	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, &err), 0);
	limits.max_pixels = 8000;
	limits.max_memory_bytes = info.memory_bytes;
	limits.max_scans = 10; /* the number of scans that libjpeg writes */
	renew();
	ck_assert_msg(decode_part(f.data, f.bytes, 1) == 0, "%s", err.msg);
	limits.max_pixels--;
	renew();
	expect(decode_part(f.data, f.bytes, 1), -E2BIG,
		"over the limit of 7999");
	limits.max_pixels++;
	limits.max_memory_bytes--;
	renew();
	expect(decode_part(f.data, f.bytes, 1), -E2BIG, "in several scans");
	limits.max_memory_bytes++;
	limits.max_scans--;
	renew();
	expect(decode_part(f.data, f.bytes, 1), -E2BIG, "more than 9 scans");
	free(f.data);
}
END_TEST

static Suite *bad_suite(void)
{
	Suite *s = suite_create("decode-bad");
	TCase *tc = case_with(s, "kind", setup, teardown);

	tcase_add_test(tc, test_what_is_no_jpeg_is_told_apart_from_damage);
	tcase_add_test(tc, test_kinds_that_are_not_decoded_are_named);
	tc = case_with(s, "cut", setup, teardown);
	tcase_add_loop_test(
		tc, test_file_that_is_cut_anywhere_is_refused, 0, JPEG_KINDS);
	tcase_add_test(tc, test_cut_file_is_refused_for_a_region_above_the_cut);
	tcase_add_loop_test(
		tc, test_lower_part_of_zeros_is_refused, 0, JPEG_KINDS);
	tcase_add_test(tc, test_bytes_behind_the_end_do_no_harm);
	tc = case_with(s, "corrupt", setup, teardown);
	tcase_add_test(tc, test_harmless_oddities_are_decoded);
	tcase_add_test(tc, test_corrupt_rows_are_refused_with_libjpegs_words);
	tcase_add_test(tc,
		test_file_that_changed_after_its_header_was_read_is_refused);
	tcase_add_test(tc,
		test_file_without_tables_is_not_decoded_with_those_of_another);
	tcase_add_loop_test(tc, test_flipped_bytes_do_no_harm, 0, JPEG_KINDS);
	tc = case_with(s, "exif", setup, teardown);
	tcase_add_loop_test(tc, test_damaged_exif_data_say_nothing, 0, 10);
	tcase_add_test(tc, test_exif_with_too_many_entries_is_read_to_its_end);
	tc = case_with(s, "limits", setup, teardown);
	tcase_add_loop_test(tc,
		test_header_that_claims_more_than_the_file_can_hold_is_refused,
		0, 3);
	tcase_add_loop_test(
		tc, test_file_that_compresses_best_is_no_bomb, 0, 4);
	tcase_add_test(
		tc, test_limits_are_kept_to_the_pixel_the_byte_and_the_scan);
	return s;
}

int main(void)
{
	return run_suite(bad_suite());
}
