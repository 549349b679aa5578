/* SPDX-License-Identifier: MIT */
/* Tests of the levels of progressive JPEGs: what a prefix lacks, by the
 * coefficients that libjpeg reads from it, and what has no level. */
#include <stdlib.h>
#include <string.h>

#include "common/format/jpeg_levels.h"
#include "jpeg_fixture.h"
#include "suite.h"

#define COEFFICIENTS_MAX 100000

static struct jpeg_file make(bool progressive, J_COLOR_SPACE space)
{
	const struct jpeg_kind kind = {
		.space = space, .progressive = progressive};

	return jpeg_make(&kind, 120, 90, 0, 7, true);
}

/* Read all coefficients of a JPEG. Returns their number. */
static size_t coefficients(const void *data, size_t bytes, JCOEF *out)
{
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr e;
	jvirt_barray_ptr *all;
	size_t n = 0;

	d.err = jpeg_std_error(&e);
	jpeg_create_decompress(&d);
	jpeg_mem_src(&d, data, bytes);
	(void)jpeg_read_header(&d, TRUE);
	all = jpeg_read_coefficients(&d);
	for (int c = 0; c < d.num_components; c++) {
		const jpeg_component_info *info = &d.comp_info[c];

		for (JDIMENSION y = 0; y < info->height_in_blocks; y++) {
			JBLOCKARRAY row = d.mem->access_virt_barray(
				(j_common_ptr)&d, all[c], y, 1, FALSE);
			size_t bytes_of_row =
				info->width_in_blocks * sizeof(JBLOCK);

			ck_assert_uint_le(n + bytes_of_row / sizeof(JCOEF),
				COEFFICIENTS_MAX);
			memcpy(out + n, row[0], bytes_of_row);
			n += bytes_of_row / sizeof(JCOEF);
		}
	}
	/* A warning would mean that the decoder misses something. */
	ck_assert_int_eq(e.num_warnings, 0);
	jpeg_destroy_decompress(&d);
	return n;
}

/* Returns a coefficient without its low bits. By T.81, G.1.2.1, the bits of a
 * DC coefficient are those of its two's complement; of others, those of the
 * magnitude. */
static int without(JCOEF coefficient, bool dc, unsigned bits)
{
	return dc ? coefficient >> bits : abs(coefficient) >> bits;
}

/* Returns the number of low bits in which the prefix differs from the file. */
static unsigned bits_lacking(const struct jpeg_file *file, uint64_t end)
{
	static JCOEF whole[COEFFICIENTS_MAX], part[COEFFICIENTS_MAX];
	unsigned char *prefix = malloc(end + sizeof(jpeg_end_marker));
	size_t n = coefficients(file->data, file->bytes, whole);
	unsigned bits = 0;

	memcpy(prefix, file->data, end);
	memcpy(prefix + end, jpeg_end_marker, sizeof(jpeg_end_marker));
	ck_assert_uint_eq(
		coefficients(prefix, end + sizeof(jpeg_end_marker), part), n);
	free(prefix);
	for (size_t i = 0; i < n; i++)
		while (without(whole[i], i % 64 == 0, bits) !=
			without(part[i], i % 64 == 0, bits))
			bits++;
	return bits;
}

START_TEST(test_prefixes_lack_the_bits_that_they_say)
{
	static const J_COLOR_SPACE spaces[] = {
		JCS_YCbCr, JCS_GRAYSCALE, JCS_CMYK};

	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		struct jpeg_file file = make(true, spaces[i]);
		uint64_t end[JPEG_DROP_BITS_MAX];

		jpeg_levels(file.data, file.bytes, end);
		ck_assert_uint_gt(end[1], 0);
		ck_assert_uint_gt(end[0], end[1]);
		ck_assert_uint_lt(end[0] + 2, file.bytes);
		ck_assert_uint_eq(bits_lacking(&file, end[0]), 1);
		ck_assert_uint_eq(bits_lacking(&file, end[1]), 2);
		free(file.data);
	}
}
END_TEST

START_TEST(test_other_files_have_no_level)
{
	struct jpeg_file file = make(false, JCS_YCbCr);
	uint64_t end[JPEG_DROP_BITS_MAX] = {9, 9};

	jpeg_levels(file.data, file.bytes, end);
	ck_assert_uint_eq(end[0] + end[1], 0);
	jpeg_levels("", 0, end);
	jpeg_levels("\xff\xd8", 2, end);
	jpeg_levels("\x89PNG\r\n\x1a\n", 8, end);
	ck_assert_uint_eq(end[0] + end[1], 0);
	free(file.data);
}
END_TEST

/* Of a file that was cut, the levels before the cut are those of the file. */
START_TEST(test_a_cut_file_has_the_levels_before_the_cut)
{
	struct jpeg_file file = make(true, JCS_YCbCr);
	uint64_t whole[JPEG_DROP_BITS_MAX];

	jpeg_levels(file.data, file.bytes, whole);
	for (size_t n = 0; n <= file.bytes; n++) {
		unsigned char *cut = malloc(n + 1); /* ASan sees the end */
		uint64_t end[JPEG_DROP_BITS_MAX];

		memcpy(cut, file.data, n);
		jpeg_levels(cut, n, end);
		for (size_t b = 0; b < JPEG_DROP_BITS_MAX; b++) {
			ck_assert(end[b] == 0 || end[b] == whole[b]);
			ck_assert(end[b] < n || n == 0);
		}
		free(cut);
	}
	free(file.data);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jpeg_levels");
	TCase *c = case_of(s, "levels");

	tcase_add_test(c, test_prefixes_lack_the_bits_that_they_say);
	tcase_add_test(c, test_other_files_have_no_level);
	tcase_add_test(c, test_a_cut_file_has_the_levels_before_the_cut);
	return run_suite(s);
}
