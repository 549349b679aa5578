/* SPDX-License-Identifier: MIT */
/* Tests of the rows in files beside an image: lines of YOLO, and JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "loader/dataset/rows.h"
#include "suite.h"

static struct rows rows;
static struct error err;

static void setup(void)
{
	memset(&rows, 0, sizeof(rows));
}

static void teardown(void)
{
	rows_memory_release(&rows);
}

static void row_is(uint32_t i, int32_t label, float x0, float y0, float x1,
	float y1, uint32_t flags)
{
	const struct box *b = array_data(&rows.boxes);

	ck_assert_uint_lt(i, rows_count(&rows));
	ck_assert_int_eq(b[i].label, label);
	ck_assert_float_eq(b[i].x0, x0);
	ck_assert_float_eq(b[i].y0, y0);
	ck_assert_float_eq(b[i].x1, x1);
	ck_assert_float_eq(b[i].y1, y1);
	ck_assert_uint_eq(b[i].flags, flags);
}

static int yolo(const char *text)
{
	err.msg[0] = '\0';
	return rows_yolo(&rows, text, strlen(text), 200, 100, &err);
}

static int json(const char *text)
{
	err.msg[0] = '\0';
	return rows_json(&rows, text, strlen(text), &err);
}

static void wrong(int rc, const char *part)
{
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(strstr(err.msg, part), "no '%s' in '%s'", part, err.msg);
	ck_assert_uint_eq(rows_count(&rows), 0);
}

START_TEST(test_yolo_is_in_shares_of_the_image)
{
	ck_assert_int_eq(
		yolo("3 0.5 0.5 0.5 0.25\n0 .25\t1e-1 0 0 \r\n"), -EBADMSG);
	ck_assert_int_eq(
		yolo("3 0.5 0.5 0.5 0.25\n\n0 0.25\t1e-1 0 0 \r\n"), 0);
	ck_assert_uint_eq(rows_count(&rows), 2);
	row_is(0, 3, 50, 37.5F, 150, 62.5F, 0);
	row_is(1, 0, 50, 10, 50, 10, 0);
	ck_assert_int_eq(yolo("7 0.5 0.5 1 1"), 0);
	ck_assert_uint_eq(rows_count(&rows), 1);
	row_is(0, 7, 0, 0, 200, 100, 0);
	ck_assert_int_eq(yolo(""), 0);
	ck_assert_uint_eq(rows_count(&rows), 0);
}
END_TEST

START_TEST(test_yolo_may_have_points)
{
	const float *p;

	ck_assert_int_eq(yolo("0 0.5 0.5 1 1 0.25 0.5 2 0 0 0\n"
			      "1 0.5 0.5 1 1 1 1 1 0 0 0"),
		0);
	ck_assert_uint_eq(rows.row_points, 2);
	p = array_data(&rows.points);
	ck_assert_float_eq(p[0], 50);
	ck_assert_float_eq(p[1], 50);
	ck_assert_float_eq(p[2], 2);
	ck_assert_float_eq(p[6], 200);
	ck_assert_float_eq(p[7], 100);
	wrong(yolo("0 0.5 0.5 1 1 0 0 1\n1 0.5 0.5 1 1"),
		"line 2: rows have different");
}
END_TEST

START_TEST(test_mistakes_in_yolo_are_named_with_their_line)
{
	wrong(yolo("0 0.5 0.5 1\n"), "line 1: a line has a class");
	wrong(yolo("0 0.5 0.5 1 1\n0 1 1 1 1 1\n"), "line 2: a line has");
	wrong(yolo("\n\ncat 0.5 0.5 1 1"),
		"line 3: it is not a line of numbers");
	wrong(yolo("0 0.5 0.5 1 1x"), "not a line of numbers");
	wrong(yolo("0 0.5.5 1 1 1"), "not a line of numbers");
	wrong(yolo("0 0.5 nan 1 1"), "not a line of numbers");
	wrong(yolo("0.5 0.5 0.5 1 1"), "not that of a class");
	wrong(yolo("-1 0.5 0.5 1 1"), "not that of a class");
	wrong(yolo("0 100 50 20 20"), "shares of the image");
	wrong(yolo("0 0.5 0.5 -1 1"), "shares of the image");
}
END_TEST

START_TEST(test_json_has_objects_or_corners)
{
	const float *p;

	ck_assert_int_eq(
		json("[{\"bbox\": [1, 2.5, 3, 4e0], \"category_id\": 5, "
		     "\"area\": [{}]}, {\"label\": 6, \"iscrowd\": 1, "
		     "\"bbox\": [-1, 0, 0, 0]}]"),
		0);
	row_is(0, 5, 1, 2.5F, 4, 6.5F, 0);
	row_is(1, 6, -1, 0, -1, 0, BOX_CROWD);
	ck_assert_int_eq(json(" {\"x\": null, \"objects\": [{\"bbox\": "
			      "[1,2,3,4], \"label\": 0, \"keypoints\": "
			      "[1,2,2, 3,4,0]}]} "),
		0);
	ck_assert_uint_eq(rows.row_points, 2);
	p = array_data(&rows.points);
	ck_assert_float_eq(p[3], 3);
	ck_assert_int_eq(json("{\"boxes\": [[1,2,3,4],[5,6,7,8]], "
			      "\"labels\": [9, 10]}"),
		0);
	row_is(1, 10, 5, 6, 7, 8, 0);
	ck_assert_int_eq(json("[]"), 0);
	ck_assert_int_eq(json("{\"boxes\": [], \"labels\": []}"), 0);
	ck_assert_uint_eq(rows_count(&rows), 0);
}
END_TEST

START_TEST(test_crowds_are_numbers_or_truth_values)
{
	ck_assert_int_eq(json("[{\"bbox\": [1,2,3,4], \"label\": 1, "
			      "\"iscrowd\": true}, {\"bbox\": [1,2,3,4], "
			      "\"label\": 1, \"iscrowd\": false}]"),
		0);
	row_is(0, 1, 1, 2, 4, 6, BOX_CROWD);
	row_is(1, 1, 1, 2, 4, 6, 0);
	wrong(json("[{\"bbox\": [1,2,3,4], \"label\": 1, "
		   "\"iscrowd\": \"1\"}]"),
		"malformed");
	wrong(json("[{\"bbox\": [1,2,3,4], \"label\": 1, "
		   "\"iscrowd\": 0.5}]"),
		"malformed");
}
END_TEST

START_TEST(test_corners_that_are_no_floats_are_damaged)
{
	wrong(json("{\"boxes\": [[-1e300,0,1,1]], \"labels\": [1]}"),
		"not [x0, y0, x1, y1]");
	wrong(json("{\"boxes\": [[0,0,1,1e300]], \"labels\": [1]}"),
		"not [x0, y0, x1, y1]");
}
END_TEST

START_TEST(test_json_of_another_shape_is_damaged)
{
	wrong(json("{}"), "it has none of annotations");
	wrong(json("{\"shapes\": [{\"label\": 1}]}"), "it has none of");
	wrong(json("{\"labels\": []}"), "it has none of");
	wrong(json("{\"annotations\": [], \"boxes\": [], \"labels\": []}"),
		"more than one of");
	wrong(json("{\"objects\": [], \"labels\": []}"), "but no boxes");
}
END_TEST

START_TEST(test_rows_have_a_bound_of_bytes)
{
	rows.most_bytes = 2 * sizeof(struct box);
	ck_assert_int_eq(yolo("0 0 0 1 1\n0 0 0 1 1\n"), 0);
	ck_assert_int_eq(yolo("0 0 0 1 1\n0 0 0 1 1\n0 0 0 1 1\n"), -E2BIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "memory"));
	ck_assert_int_eq(yolo("0 0 0 1 1 1 1 1\n0 0 0 1 1 1 1 1\n"), -E2BIG);
}
END_TEST

START_TEST(test_mistakes_in_json_are_named_with_their_byte)
{
	wrong(json(""), "byte 0: it is malformed");
	wrong(json("[{\"bbox\": [1,2,3,4], \"label\": 1}"), "malformed");
	wrong(json("[{\"label\": 1}]"), "byte 13: it has no bbox");
	wrong(json("[{\"bbox\": [1,2,3,4]}]"), "no number of a class");
	wrong(json("[{\"bbox\": [1,2,3,4], \"label\": 1.5}]"), "no number");
	wrong(json("[{\"bbox\": [1,2,3], \"label\": 1}]"), "malformed");
	wrong(json("[{\"bbox\": [1,2,3,4,5], \"label\": 1}]"), "malformed");
	wrong(json("[{\"bbox\": [1,2,-3,4], \"label\": 1}]"),
		"its bbox is not");
	wrong(json("[{\"bbox\": [1,2,1e999,4], \"label\": 1}]"), "malformed");
	wrong(json("[{\"bbox\": [1,2,3e38,3e38], \"label\": 1, "
		   "\"keypoints\": [1,2]}]"),
		"malformed");
	wrong(json("{\"boxes\": [[3,2,1,4]], \"labels\": [1]}"), "x0, y0, x1");
	wrong(json("{\"boxes\": [[1,2,3,4]]}"), "fewer elements");
	wrong(json("{\"labels\": [1], \"boxes\": [[1,2,3,4]]}"),
		"more elements");
	wrong(json("[] []"), "malformed");
	wrong(json("[[[[[[[[[[[[[[[[[[[[["), "malformed");
}
END_TEST

START_TEST(test_rows_have_a_limit)
{
	size_t bytes = 70000 * 10, at = 0;
	char *text = malloc(bytes + 1);

	ck_assert_ptr_nonnull(text);
	while (at < bytes)
		at += (size_t)sprintf(text + at, "1 0 0 1 1\n");
	ck_assert_int_eq(rows_yolo(&rows, text, ROWS_MAX * 10, 9, 9, &err), 0);
	ck_assert_uint_eq(rows_count(&rows), ROWS_MAX);
	ck_assert_int_eq(rows_yolo(&rows, text, bytes, 9, 9, &err), -E2BIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "line 65537: more than 65536"));
	free(text);
}
END_TEST

/* -- Numbers --------------------------------------------------------------- */

START_TEST(test_reals_are_the_nearest_doubles)
{
	static const char *const texts[] = {"0", "-0", "1", "-17", "0.1",
		"123.456", "473.07", "9007199254740993", "0.30000000000000004",
		"1e3", "1.5E-3", "179.99999999999997", "12345678901234567890",
		"2.2250738585072014e-308", "5e-324", "0.000000000000000001",
		"123456789012345678.5", "9007199254740992.1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_scan s = json_scan(texts[i], strlen(texts[i]));
		double v, want = strtod(texts[i], NULL);

		ck_assert(json_take_real(&s, &v));
		ck_assert_msg(memcmp(&v, &want, sizeof(v)) == 0, "%s: %a",
			texts[i], v);
		ck_assert(json_is_over(&s));
	}
}
END_TEST

START_TEST(test_what_is_no_real_is_refused)
{
	static const char *const texts[] = {"", "-", "+1", ".5", "1.", "1.e3",
		"1e", "1e+", "nan", "inf", "0x10", "1e999", "-1e999", "\"1\""};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_scan s = json_scan(texts[i], strlen(texts[i]));
		double v;

		ck_assert_msg(!json_take_real(&s, &v) || !json_is_over(&s),
			"%s: %g", texts[i], v);
	}
}
END_TEST

/* -- Class numbers --------------------------------------------------------- */

START_TEST(test_class_numbers_are_words_or_an_array)
{
	static const struct {
		const char *text;
		size_t count;
		int32_t last;
	} cases[] = {{"3 7 12", 3, 12}, {"[3, 7]", 2, 7}, {"5\n", 1, 5},
		{"", 0, 0}, {" \n", 0, 0}, {"[]", 0, 0},
		{"2147483647", 1, INT32_MAX}};
	struct array numbers = {NULL, 0, 0};
	size_t before = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const int32_t *n;

		ck_assert_int_eq(rows_numbers(&numbers, cases[i].text,
					 strlen(cases[i].text), &err),
			0);
		n = array_data(&numbers);
		before += cases[i].count;
		ck_assert_uint_eq(array_count(&numbers, sizeof(*n)), before);
		if (cases[i].count)
			ck_assert_int_eq(n[before - 1], cases[i].last);
	}
	array_release(&numbers);
}
END_TEST

START_TEST(test_what_are_no_class_numbers_is_refused)
{
	static const char *const texts[] = {"1.5", "-1", "1,2", "[1", "[1] 2",
		"cat", "2147483648", "[1, \"2\"]", "3 x"};
	struct array numbers = {NULL, 0, 0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		ck_assert_int_eq(rows_numbers(&numbers, texts[i],
					 strlen(texts[i]), &err),
			-EBADMSG);
		ck_assert_msg(strstr(err.msg, "class") != NULL, "%s", err.msg);
		ck_assert_uint_eq(array_bytes(&numbers), 0);
	}
	array_release(&numbers);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rows");
	TCase *tc = case_with(s, "rows", setup, teardown);

	tcase_add_test(tc, test_yolo_is_in_shares_of_the_image);
	tcase_add_test(tc, test_yolo_may_have_points);
	tcase_add_test(tc, test_mistakes_in_yolo_are_named_with_their_line);
	tcase_add_test(tc, test_json_has_objects_or_corners);
	tcase_add_test(tc, test_corners_that_are_no_floats_are_damaged);
	tcase_add_test(tc, test_crowds_are_numbers_or_truth_values);
	tcase_add_test(tc, test_json_of_another_shape_is_damaged);
	tcase_add_test(tc, test_rows_have_a_bound_of_bytes);
	tcase_add_test(tc, test_mistakes_in_json_are_named_with_their_byte);
	tcase_add_test(tc, test_rows_have_a_limit);
	tcase_add_test(tc, test_reals_are_the_nearest_doubles);
	tcase_add_test(tc, test_what_is_no_real_is_refused);
	tcase_add_test(tc, test_class_numbers_are_words_or_an_array);
	tcase_add_test(tc, test_what_are_no_class_numbers_is_refused);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
