/* SPDX-License-Identifier: MIT */
/*
 * Tests of transcoding: without loss, every kind of JPEG keeps its pixels and
 * its markers; with loss, steps never become finer, and the loss is marked.
 */
#include <errno.h>

#include "common/base/cleanup.h"
#include "loader/image/likeness.h"
#include "loader/image/transcode.h"
#include "jpeg_fixture.h"
#include "suite.h"

static struct error err;

static struct transcoder *coder(struct transcode_options o)
{
	struct transcoder *t;

	ck_assert_int_eq(transcoder_new(&t, &o), 0);
	err.msg[0] = '\0';
	return t;
}

static bool contains(
	const uint8_t *data, size_t bytes, const char *text, size_t n)
{
	return memmem(data, bytes, text, n) != NULL;
}

static bool same_pixels(
	const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	struct jpeg_pixels p = jpeg_decode_all(a, a_bytes, 1);
	struct jpeg_pixels q = jpeg_decode_all(b, b_bytes, 1);
	bool same = p.width == q.width && p.height == q.height &&
		p.channels == q.channels && p.adobe == q.adobe &&
		memcmp(p.data, q.data,
			(size_t)p.width * p.height * p.channels) == 0;

	free(p.data);
	free(q.data);
	return same;
}

/* Append bytes after the end of the image. */
static void append(struct jpeg_file *f, const char *text)
{
	size_t n = strlen(text);
	unsigned char *data = malloc(f->bytes + n);

	memcpy(data, f->data, f->bytes);
	memcpy(data + f->bytes, text, n);
	free(f->data);
	f->data = data;
	f->bytes += n;
}

static const struct transcode_options exact[] = {
	{.form = TRANSCODE_BASELINE},
	{.form = TRANSCODE_RESTART, .restart_mcus = 2},
	{.form = TRANSCODE_RESTART},
	{.form = TRANSCODE_PROGRESSIVE},
};

/* -- Without loss ---------------------------------------------------------- */

static void check_exact(const struct jpeg_kind *kind, struct transcoder *t)
{
	struct jpeg_file f = jpeg_make(kind, 83, 61, 6, 7, true);
	struct transcode_info info;
	const uint8_t *out;
	size_t bytes;
	int rc;

	append(&f, "after the end");
	rc = transcode(t, f.data, f.bytes, "test", &out, &bytes, &err);
	ck_assert_msg(rc == 0, "%s: %s", kind->name, err.msg);
	ck_assert_msg(
		same_pixels(f.data, f.bytes, out, bytes), "%s", kind->name);
	ck_assert(contains(out, bytes, "Exif\0\0", 6));
	ck_assert(contains(out, bytes, "refrain recode 1 test", 21));
	ck_assert_int_eq(memcmp(out + bytes - 13, "after the end", 13), 0);
	ck_assert_int_eq(transcode_probe(t, out, bytes, &info, &err), 0);
	ck_assert_str_eq(info.lossy, "");
	free(f.data);
}

START_TEST(test_no_form_without_loss_changes_a_pixel_or_a_marker)
{
	struct transcoder *t = coder(exact[_i]);

	/* libjpeg's scans of a progressive file begin with one of all
	 * components, for which 4x4 has too many blocks. */
	for (size_t i = 0; i < JPEG_KINDS; i++)
		if (exact[_i].form != TRANSCODE_PROGRESSIVE ||
			!jpeg_kinds[i].separate || jpeg_kinds[i].h[0] < 4)
			check_exact(&jpeg_kinds[i], t);
	transcoder_free(t);
}
END_TEST

START_TEST(test_a_form_is_what_its_name_says)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 83, 61, 0, 7, true);

	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
		struct transcoder *t = coder(exact[i]);
		struct transcode_info info;
		const uint8_t *out;
		size_t bytes;

		ck_assert_int_eq(transcode(t, f.data, f.bytes, "test", &out,
					 &bytes, &err),
			0);
		ck_assert_int_eq(
			transcode_probe(t, out, bytes, &info, &err), 0);
		ck_assert_int_eq(info.progressive,
			exact[i].form == TRANSCODE_PROGRESSIVE);
		ck_assert_int_eq(contains(out, bytes, "\xff\xd0", 2),
			exact[i].form == TRANSCODE_RESTART);
		transcoder_free(t);
	}
	free(f.data);
}
END_TEST

START_TEST(test_progressive_to_baseline_and_back_is_exact)
{
	struct jpeg_kind kind = {
		.name = "", .space = JCS_YCbCr, .progressive = true};
	struct jpeg_file f = jpeg_make(&kind, 200, 150, 0, 3, true);
	struct transcoder *there = coder(exact[0]), *back = coder(exact[3]);
	const uint8_t *one, *two;
	size_t one_bytes, two_bytes;

	ck_assert_int_eq(
		transcode(there, f.data, f.bytes, "a", &one, &one_bytes, &err),
		0);
	ck_assert_int_eq(
		transcode(back, one, one_bytes, "b", &two, &two_bytes, &err),
		0);
	ck_assert(same_pixels(f.data, f.bytes, two, two_bytes));
	transcoder_free(there);
	transcoder_free(back);
	free(f.data);
}
END_TEST

/* -- With loss ------------------------------------------------------------- */

/* The steps of each component, 64 each. */
static void read_steps(const void *data, size_t bytes, UINT16 steps[4][64])
{
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr errors;

	c.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, data, bytes);
	(void)jpeg_read_header(&c, TRUE);
	(void)jpeg_read_coefficients(&c);
	for (int i = 0; i < c.num_components; i++)
		memcpy(steps[i], c.comp_info[i].quant_table->quantval,
			sizeof(steps[i]));
	jpeg_destroy_decompress(&c);
}

START_TEST(test_a_quality_makes_steps_coarser_and_never_finer)
{
	const struct transcode_options o = {
		.form = TRANSCODE_QUALITY, .quality = 60 + (unsigned)_i};
	struct transcoder *t = coder(o);

	for (size_t k = 0; k < JPEG_KINDS; k++) {
		struct jpeg_file f =
			jpeg_make(&jpeg_kinds[k], 83, 61, 0, 15, true);
		UINT16 before[4][64] = {{0}}, after[4][64] = {{0}};
		struct transcode_info info;
		const uint8_t *out;
		size_t bytes;
		int rc = transcode(t, f.data, f.bytes, "quality=60 test", &out,
			&bytes, &err);

		ck_assert_msg(rc == 0, "%s: %s", jpeg_kinds[k].name, err.msg);
		read_steps(f.data, f.bytes, before);
		read_steps(out, bytes, after);
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 64; j++)
				ck_assert_int_ge(after[i][j], before[i][j]);
		ck_assert_int_eq(
			transcode_probe(t, out, bytes, &info, &err), 0);
		ck_assert_str_eq(info.lossy, "quality=60 test");
		free(f.data);
	}
	transcoder_free(t);
}
END_TEST

START_TEST(test_a_coarser_source_loses_nothing)
{
	const struct transcode_options o = {
		.form = TRANSCODE_QUALITY, .quality = 95};
	struct transcoder *t = coder(o);
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 83, 61, 0, 0, true);
	const uint8_t *out;
	size_t bytes;

	ck_assert_int_eq(
		transcode(t, f.data, f.bytes, "", &out, &bytes, &err), 0);
	ck_assert(same_pixels(f.data, f.bytes, out, bytes));
	transcoder_free(t);
	free(f.data);
}
END_TEST

START_TEST(test_the_loss_is_that_of_the_quality)
{
	struct jpeg_kind kind = {.name = "", .space = JCS_YCbCr};
	struct jpeg_file f = jpeg_make(&kind, 320, 300, 0, 39, true);
	struct likeness_meter *m;
	double before = LIKENESS_PSNR_MAX;

	ck_assert_int_eq(likeness_meter_new(&m), 0);
	for (unsigned q = 95; q >= 35; q -= 20) {
		const struct transcode_options o = {
			.form = TRANSCODE_QUALITY, .quality = q};
		struct transcoder *t = coder(o);
		struct likeness l;
		const uint8_t *out;
		size_t bytes;

		ck_assert_int_eq(
			transcode(t, f.data, f.bytes, "", &out, &bytes, &err),
			0);
		ck_assert_int_eq(likeness_of_files(m, f.data, f.bytes, out,
					 bytes, &l, &err),
			0);
		ck_assert(l.psnr < before && l.psnr > 20 && l.ssim > 0.5);
		before = l.psnr;
		transcoder_free(t);
	}
	likeness_meter_free(m);
	free(f.data);
}
END_TEST

START_TEST(test_a_size_is_that_of_the_shorter_side)
{
	const struct transcode_options o = {
		.form = TRANSCODE_QUALITY, .quality = 90, .shorter = 40};
	struct transcoder *t = coder(o);

	for (size_t k = 0; k < JPEG_KINDS; k++) {
		struct jpeg_file f =
			jpeg_make(&jpeg_kinds[k], 120, 60, 6, 15, true);
		struct jpeg_pixels p;
		const uint8_t *out;
		size_t bytes;
		int rc = transcode(
			t, f.data, f.bytes, "test", &out, &bytes, &err);

		if (jpeg_kinds[k].space == JCS_CMYK ||
			jpeg_kinds[k].space == JCS_YCCK) {
			ck_assert_int_eq(rc, -EMEDIUMTYPE);
		} else {
			ck_assert_msg(
				rc == 0, "%s: %s", jpeg_kinds[k].name, err.msg);
			p = jpeg_decode_all(out, bytes, 1);
			ck_assert_uint_eq(p.width, 80);
			ck_assert_uint_eq(p.height, 40);
			ck_assert(contains(out, bytes, "Exif\0\0", 6));
			free(p.data);
		}
		free(f.data);
	}
	transcoder_free(t);
}
END_TEST

/* -- Bad files ------------------------------------------------------------- */

START_TEST(test_a_bad_file_gives_an_error_and_harms_no_later_one)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 83, 61, 0, 7, true);
	struct transcoder *t = coder(exact[0]);
	CLEANUP_FREE uint8_t *bad = malloc(f.bytes);
	const uint8_t *out;
	size_t bytes;

	ck_assert_int_eq(
		transcode(t, f.data, f.bytes / 2, "", &out, &bytes, &err),
		-EBADMSG);
	ck_assert_int_eq(transcode(t, "GIF89a", 6, "", &out, &bytes, &err),
		-EMEDIUMTYPE);
	/* a scan that ends early, in a file that has an end */
	memcpy(bad, f.data, f.bytes);
	memcpy(bad + f.bytes / 2, "\xff\xd9", 2);
	ck_assert_int_eq(
		transcode(t, bad, f.bytes, "", &out, &bytes, &err), -EBADMSG);
	ck_assert(err.msg[0]);
	ck_assert_int_eq(
		transcode(t, f.data, f.bytes, "", &out, &bytes, &err), 0);
	ck_assert(same_pixels(f.data, f.bytes, out, bytes));
	transcoder_free(t);
	free(f.data);
}
END_TEST

/* -- Likeness -------------------------------------------------------------- */

START_TEST(test_likeness_is_what_its_formulas_say)
{
	CLEANUP_FREE uint8_t *a = malloc(LIKENESS_BYTES);
	CLEANUP_FREE uint8_t *b = malloc(LIKENESS_BYTES);
	struct likeness l;

	for (size_t i = 0; i < LIKENESS_BYTES; i++)
		a[i] = (uint8_t)(i % 200);
	memcpy(b, a, LIKENESS_BYTES);
	l = likeness_of(a, b);
	ck_assert(l.psnr == LIKENESS_PSNR_MAX && l.ssim > 0.999999);
	for (size_t i = 0; i < LIKENESS_BYTES; i++)
		b[i] = (uint8_t)(a[i] + 5);
	/* 20 log10(255 / 5) */
	l = likeness_of(a, b);
	ck_assert(l.psnr > 34.15 && l.psnr < 34.16);
	ck_assert(l.ssim > 0.9 && l.ssim < 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("transcode");
	TCase *t = case_of(s, "exact");

	tcase_add_loop_test(t,
		test_no_form_without_loss_changes_a_pixel_or_a_marker, 0,
		sizeof(exact) / sizeof(exact[0]));
	tcase_add_test(t, test_a_form_is_what_its_name_says);
	tcase_add_test(t, test_progressive_to_baseline_and_back_is_exact);
	t = case_of(s, "loss");
	tcase_add_loop_test(
		t, test_a_quality_makes_steps_coarser_and_never_finer, 0, 3);
	tcase_add_test(t, test_a_coarser_source_loses_nothing);
	tcase_add_test(t, test_the_loss_is_that_of_the_quality);
	tcase_add_test(t, test_a_size_is_that_of_the_shorter_side);
	t = case_of(s, "bad");
	tcase_add_test(
		t, test_a_bad_file_gives_an_error_and_harms_no_later_one);
	t = case_of(s, "likeness");
	tcase_add_test(t, test_likeness_is_what_its_formulas_say);
	return run_suite(s);
}
