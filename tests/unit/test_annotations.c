/* SPDX-License-Identifier: MIT */
/* Tests of annotations in COCO's JSON: rows are found by an image's name,
 * catalogues are used and replaced, and invalid files give messages. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader/dataset/annotations.h"
#include "suite.h"

static char top[200], path[256], cache[256];
static struct error err;

static void setup(void)
{
	(void)snprintf(top, sizeof(top), "%s/annXXXXXX", test_dir());
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(path, sizeof(path), "%s/a.json", top);
	(void)snprintf(cache, sizeof(cache), "%s/cache", top);
}

static void teardown(void)
{
	char command[300];

	(void)snprintf(command, sizeof(command), "rm -r '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

/* Write the file with a time of change one hour ago, plus `age` seconds. */
static void put(const char *text, int age)
{
	struct timespec t[2] = {
		{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - 3600 + age}};
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

static struct annotations *open_file(const char *cache_dir)
{
	struct annotations *a;
	int rc = annotations_open(&a, path, cache_dir, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, rc < 0 ? err.msg : "");
	return a;
}

#define CATEGORIES                                                             \
	"\"categories\": [{\"id\": 90, \"name\": \"cat\"}, {\"id\": 3, "       \
	"\"name\": \"d\\u00f6g\", \"supercategory\": \"animal\"}]"
#define IMAGES                                                                 \
	"\"images\": [{\"id\": 7, \"file_name\": \"b/2.jpg\", \"width\": "     \
	"640, \"height\": 480}, {\"file_name\": \"1.jpg\", \"id\": 5}]"
#define BOX(image, category, x)                                                \
	"{\"image_id\": " #image ", \"category_id\": " #category               \
	", \"segmentation\": [[1.5, 2, 3e1]], \"bbox\": [" #x ", 2, 3, 4]}"

static const char usual[] =
	"{\"info\": {\"x\": [\"}\\\"]\", 1]}, " IMAGES
	",\n\"annotations\": [" BOX(7, 90, 10) ", " BOX(5, 3, 20) ", " BOX(6, 3,
		30) ", " BOX(7, 3, 40) "], \"licenses\": [], " CATEGORIES "}\n";

static void box_is(
	const struct annotation_rows *r, uint32_t i, int32_t label, float x)
{
	ck_assert_uint_lt(i, r->count);
	ck_assert_int_eq(r->boxes[i].label, label);
	ck_assert_float_eq(r->boxes[i].x0, x);
	ck_assert_float_eq(r->boxes[i].y0, 2);
	ck_assert_float_eq(r->boxes[i].x1, x + 3);
	ck_assert_float_eq(r->boxes[i].y1, 6);
}

static void is_usual(const struct annotations *a)
{
	struct annotations_totals t;
	struct annotation_rows r;

	annotations_totals(a, &t);
	ck_assert_uint_eq(t.images, 2);
	ck_assert_uint_eq(t.boxes, 3);
	ck_assert_uint_eq(t.orphans, 1);
	ck_assert_uint_eq(t.classes, 2);
	ck_assert_str_eq(annotations_class(a, 0), "d\xc3\xb6g");
	ck_assert_str_eq(annotations_class(a, 1), "cat");
	ck_assert_ptr_null(annotations_class(a, 2));
	ck_assert_int_eq(annotations_find(a, "b/2.jpg", &r), 0);
	ck_assert_uint_eq(r.count, 2);
	ck_assert_uint_eq(r.width, 640);
	box_is(&r, 0, 1, 10);
	box_is(&r, 1, 0, 40);
	ck_assert_int_eq(annotations_find(a, "train/x/1.jpg", &r), 0);
	ck_assert_uint_eq(r.count, 1);
	box_is(&r, 0, 0, 20);
	ck_assert_ptr_null(r.points);
	ck_assert_int_eq(annotations_find(a, "2.jpg", &r), -ENOENT);
	ck_assert_int_eq(annotations_find(a, "b/2.jpg/", &r), -ENOENT);
}

START_TEST(test_rows_are_found_by_the_name_of_their_image)
{
	struct annotations *a;

	put(usual, 0);
	a = open_file(NULL);
	is_usual(a);
	annotations_close(a);
}
END_TEST

START_TEST(test_members_come_in_any_order)
{
	struct annotation_rows r;
	struct annotations *a;

	put("{" CATEGORIES ", \"annotations\": [" BOX(5, 90, 1) "], " IMAGES
								"}",
		0);
	a = open_file(NULL);
	ck_assert_int_eq(annotations_find(a, "1.jpg", &r), 0);
	box_is(&r, 0, 1, 1);
	ck_assert_int_eq(annotations_find(a, "b/2.jpg", &r), 0);
	ck_assert_uint_eq(r.count, 0);
	annotations_close(a);
}
END_TEST

START_TEST(test_keypoints_follow_their_rows)
{
	struct annotation_rows r;
	struct annotations_totals t;
	struct annotations *a;

	put("{" IMAGES ", " CATEGORIES
	    ", \"annotations\": [{\"image_id\": 7, \"bbox\": [0,0,1,1], "
	    "\"category_id\": 3, \"keypoints\": [1,2,2,3,4,1]}, "
	    "{\"image_id\": 5, \"bbox\": [0,0,1,1], \"category_id\": 3, "
	    "\"keypoints\": [5,6,2,7,8,1]}]}",
		0);
	for (int i = 0; i < 2; i++) {
		a = open_file(cache);
		annotations_totals(a, &t);
		ck_assert_uint_eq(t.points, 2);
		ck_assert_int_eq(annotations_find(a, "1.jpg", &r), 0);
		ck_assert_float_eq(r.points[0], 5);
		ck_assert_float_eq(r.points[5], 1);
		ck_assert_int_eq(annotations_find(a, "b/2.jpg", &r), 0);
		ck_assert_float_eq(r.points[3], 3);
		annotations_close(a);
	}
}
END_TEST

/* -- The catalogue -------------------------------------------------------- */

static bool is_mapped(const struct annotations *a)
{
	struct annotations_totals t;

	annotations_totals(a, &t);
	return t.private_bytes < t.table_bytes;
}

static void kept_file(char to[512])
{
	char pattern[300];
	glob_t g;

	(void)snprintf(pattern, sizeof(pattern), "%s/annotations-*", cache);
	ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
	ck_assert_uint_eq(g.gl_pathc, 1);
	(void)snprintf(to, 512, "%s", g.gl_pathv[0]);
	globfree(&g);
}

START_TEST(test_the_catalogue_is_kept_until_the_file_changes)
{
	struct annotations *a;

	put(usual, 0);
	for (int i = 0; i < 3; i++) {
		a = open_file(cache);
		ck_assert(is_mapped(a) == (i > 0));
		is_usual(a);
		annotations_close(a);
	}
	put(usual, 1);
	a = open_file(cache);
	ck_assert(!is_mapped(a));
	is_usual(a);
	annotations_close(a);
}
END_TEST

START_TEST(test_a_file_of_this_second_is_not_trusted)
{
	struct annotations *a;

	put(usual, 3600);
	for (int i = 0; i < 2; i++) {
		a = open_file(cache);
		ck_assert(!is_mapped(a));
		annotations_close(a);
	}
}
END_TEST

START_TEST(test_a_catalogue_with_any_changed_byte_is_made_anew)
{
	char kept[512];
	struct annotations *a;
	struct stat st;

	put(usual, 0);
	annotations_close(open_file(cache));
	kept_file(kept);
	ck_assert_int_eq(stat(kept, &st), 0);
	for (off_t i = 0; i < st.st_size; i++) {
		int fd = open(kept, O_RDWR | O_CLOEXEC);
		char c;

		ck_assert_int_eq(pread(fd, &c, 1, i), 1);
		c ^= 0x10;
		ck_assert_int_eq(pwrite(fd, &c, 1, i), 1);
		ck_assert_int_eq(close(fd), 0);
		a = open_file(cache);
		ck_assert_msg(!is_mapped(a), "byte %lld", (long long)i);
		is_usual(a);
		annotations_close(a);
	}
	ck_assert_int_eq(truncate(kept, st.st_size - 1), 0);
	a = open_file(cache);
	ck_assert(!is_mapped(a));
	annotations_close(a);
}
END_TEST

/* -- Mistakes -------------------------------------------------------------- */

static void refused_as(const char *text, int want, const char *part)
{
	struct annotations *a;
	int rc;

	put(text, 0);
	err.msg[0] = '\0';
	rc = annotations_open(&a, path, cache, &err);
	ck_assert_msg(rc == want, "%d instead of %d: %s", rc, want, err.msg);
	ck_assert_ptr_null(a);
	ck_assert_msg(strstr(err.msg, part), "no '%s' in '%s'", part, err.msg);
	ck_assert_ptr_nonnull(strstr(err.msg, path));
}

#define ANNOTATIONS(text)                                                      \
	"{" IMAGES ", " CATEGORIES ", \"annotations\": [" text "]}"

START_TEST(test_mistakes_are_named)
{
	struct annotations *a;

	ck_assert_int_eq(annotations_open(&a, path, NULL, &err), -ENOENT);
	ck_assert_int_eq(annotations_open(&a, top, NULL, &err), -EINVAL);
	refused_as("", -EBADMSG, "at byte 0: not COCO's JSON");
	refused_as("[]", -EBADMSG, "not COCO's JSON");
	refused_as("{}", -EBADMSG, "malformed JSON");
	refused_as("{\"a\": 1}", -EBADMSG, "no array \"images\"");
	refused_as("{" IMAGES ", \"annotations\": []}", -EBADMSG,
		"no array \"categories\"");
	refused_as("{" IMAGES ", " IMAGES "}", -EBADMSG, "a second array");
	refused_as("{\"images\": {}}", -EBADMSG, "not an array");
	refused_as("{\"images\": [{\"id\": 1}]}", -EBADMSG, "no file_name");
	refused_as("{\"images\": [{\"file_name\": \"a\"}]}", -EBADMSG, "no id");
	refused_as("{\"images\": [{}", -EBADMSG, "no id");
	refused_as("{\"images\": [{", -EBADMSG, "too early");
	refused_as("{\"images\": [{]}]", -EBADMSG, "in an image");
	refused_as("{\"images\": [{\"id\": 1, \"file_name\": \"a\"} {}",
		-EBADMSG, "in an array");
	refused_as("{\"images\": [], \"annotations\": [], "
		   "\"categories\": []}",
		-EBADMSG, "has no images");
	refused_as(ANNOTATIONS(BOX(7, 4, 1)), -EBADMSG, "category_id 4");
	refused_as(ANNOTATIONS("{\"id\": 8, \"image_id\": 7}"), -EBADMSG,
		"(id 8): it has no bbox");
	refused_as(ANNOTATIONS("{\"id\": 8, \"bbox\": [1,2,3,4], "
			       "\"category_id\": 3}"),
		-EBADMSG, "no image_id");
	refused_as(ANNOTATIONS(BOX(7, 3, "x")), -EBADMSG, "in an annotation");
	refused_as(ANNOTATIONS(BOX(7, 3, 1)) " x", -EBADMSG, "malformed");
	refused_as("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, "
		   "{\"id\": 1, \"file_name\": \"b\"}], "
		   "\"annotations\": [], " CATEGORIES "}",
		-EBADMSG, "two images have the id 1");
	refused_as("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, "
		   "{\"id\": 2, \"file_name\": \"a\"}], "
		   "\"annotations\": [], " CATEGORIES "}",
		-EBADMSG, "two images have the file_name 'a'");
}
END_TEST

START_TEST(test_a_file_that_is_cut_anywhere_is_refused)
{
	char text[sizeof(usual)];

	for (size_t n = 0; n < strlen(usual) - 1; n++) {
		struct annotations *a;

		memcpy(text, usual, n);
		text[n] = '\0';
		put(text, 0);
		ck_assert_int_eq(
			annotations_open(&a, path, NULL, &err), -EBADMSG);
	}
}
END_TEST

START_TEST(test_an_element_may_not_be_of_any_size)
{
	FILE *f = fopen(path, "w");
	struct annotations *a;

	ck_assert_ptr_nonnull(f);
	fputs("{\"extra\": \"", f);
	for (int i = 0; i < 20 << 10; i++)
		fprintf(f, "%01024d", 0);
	fputs("\", \"images\": [\"", f);
	for (int i = 0; i < 18 << 10; i++)
		fprintf(f, "%01024d", 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(annotations_open(&a, path, NULL, &err), -E2BIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "a value of more than"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("annotations");
	TCase *tc = case_with(s, "annotations", setup, teardown);

	tcase_add_test(tc, test_rows_are_found_by_the_name_of_their_image);
	tcase_add_test(tc, test_members_come_in_any_order);
	tcase_add_test(tc, test_keypoints_follow_their_rows);
	tcase_add_test(tc, test_the_catalogue_is_kept_until_the_file_changes);
	tcase_add_test(tc, test_a_file_of_this_second_is_not_trusted);
	tcase_add_test(tc, test_a_catalogue_with_any_changed_byte_is_made_anew);
	tcase_add_test(tc, test_mistakes_are_named);
	tcase_add_test(tc, test_a_file_that_is_cut_anywhere_is_refused);
	tcase_add_test(tc, test_an_element_may_not_be_of_any_size);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
