/* SPDX-License-Identifier: MIT */
/* Files of a dataset that are not examples are counted and named; classes keep
 * their numbers. */
#include "examples_fixture.h"
#include "suite.h"

static void skipped_is(const struct dataset *ds, uint64_t files,
	const char *first_file, uint64_t classes, const char *first_class)
{
	struct dataset_skipped s;

	dataset_skipped(ds, &s);
	ck_assert_uint_eq(s.files, files);
	ck_assert_pstr_eq(s.first_file, first_file);
	ck_assert_uint_eq(s.classes, classes);
	ck_assert_pstr_eq(s.first_class, first_class);
}

/* Close the dataset, and open it again from its catalogue. */
static struct dataset *open_again(struct dataset *ds)
{
	uint64_t print = dataset_fingerprint(ds);

	dataset_close(ds);
	ds = open_as(tree, REFRAIN_SOURCE_AUTO);
	/* the catalogue was mapped */
	ck_assert_uint_eq(dataset_memory_bytes(ds) < 4096, 1);
	ck_assert_uint_eq(dataset_fingerprint(ds), print);
	return ds;
}

START_TEST(test_a_directory_without_a_jpeg_keeps_its_class_number)
{
	struct dataset *ds;

	put("a/1.gif");
	put("b/x.jpg");
	put("c/x.jpg");
	age();
	ds = open_as(tree, REFRAIN_SOURCE_AUTO);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(dataset_count(ds), 2);
		ck_assert_uint_eq(dataset_classes(ds), 3);
		class_is(ds, 0, "a");
		example_is(ds, 0, "b/x.jpg", 1);
		example_is(ds, 1, "c/x.jpg", 2);
		skipped_is(ds, 1, "a/1.gif", 1, "a");
		ds = open_again(ds);
	}
	dataset_close(ds);
}
END_TEST

START_TEST(test_every_directory_of_the_root_is_a_class)
{
	struct dataset *ds;

	put("b/x.jpg");
	put(".git/x.jpg");
	put("lost+found/x.jpg");
	put("deep/1/2/3/x.jpg");
	put("far.jpg");
	sh("mkdir empty ../elsewhere; touch ../elsewhere/x.jpg; "
	   "ln -s ../elsewhere link; ln -s none broken; ln -s . loop");
	ds = open_as(tree, REFRAIN_SOURCE_FOLDER);
	ck_assert_uint_eq(dataset_count(ds), 4);
	ck_assert_uint_eq(dataset_classes(ds), 7);
	class_is(ds, 0, ".git");
	example_is(ds, 0, "b/x.jpg", 1);
	example_is(ds, 1, "deep/1/2/3/x.jpg", 2);
	class_is(ds, 3, "empty");
	example_is(ds, 2, "far.jpg", -1);
	example_is(ds, 3, "link/x.jpg", 4);
	class_is(ds, 5, "loop");
	class_is(ds, 6, "lost+found");
	/* The skipped files are .git, broken and lost+found. */
	skipped_is(ds, 3, ".git", 4, ".git");
	dataset_close(ds);
}
END_TEST

START_TEST(test_nothing_is_skipped_of_a_folder_of_jpegs)
{
	struct dataset *ds;

	put("a/x.jpg");
	put("b/x.jpeg");
	put("y.jpg");
	ds = open_as(tree, REFRAIN_SOURCE_AUTO);
	skipped_is(ds, 0, NULL, 0, NULL);
	dataset_close(ds);
}
END_TEST

START_TEST(test_the_first_that_is_skipped_is_that_of_the_lowest_path)
{
	static const char *const names[] = {"b/z.txt", "b/a/9.gif",
		"b/a-/1.bmp", "b/.hidden", "c/1", "b/ok.jpg", "c/ok.jpg"};
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);
	struct dataset *ds;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		put(names[i]);
	sh("mkfifo b/-fifo.jpg");
	for (o.threads = 1; o.threads <= 8; o.threads *= 8) {
		ds = open_with(&o);
		skipped_is(ds, 6, "b/-fifo.jpg", 0, NULL);
		dataset_close(ds);
	}
	o.any_file = true;
	ds = open_with(&o);
	skipped_is(ds, 2, "b/-fifo.jpg", 0, NULL);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_table_of_index_has_the_classes_of_the_folder)
{
	struct dataset *folder, *table;

	put("d/a/1.gif");
	put("d/b/x.jpg");
	put("d/.c/x.jpg");
	put("d/z.txt");
	put_text("l",
		"# refrain index 1: path, size, mtime, label\n"
		".c/x.jpg\t1\t0\t.c\na/1.gif\t1\t0\ta\nb/x.jpg\t1\t0\tb\n"
		"z.txt\t1\t0\t\n");
	folder = open_as(in_tree("d"), REFRAIN_SOURCE_FOLDER);
	table = open_as(in_tree("l"), REFRAIN_SOURCE_AUTO);
	ck_assert_uint_eq(
		dataset_fingerprint(folder), dataset_fingerprint(table));
	example_is(table, 0, "b/x.jpg", 2);
	skipped_is(folder, 3, ".c", 2, ".c");
	skipped_is(table, 3, ".c/x.jpg", 2, ".c");
	dataset_close(folder);
	dataset_close(table);
}
END_TEST

START_TEST(test_base_names_of_a_tar_without_an_image_are_skipped)
{
	struct dataset *ds;

	put("m/1.gif");
	put("m/1.cls");
	put("m/2.jpg");
	put("m/2.json");
	put("m/3.txt");
	put("readme");
	sh("tar -C m --sort=name -cf a.tar 1.gif 1.cls 2.jpg 2.json 3.txt; "
	   "rm -r m");
	ds = open_as(tree, REFRAIN_SOURCE_AUTO);
	ck_assert_uint_eq(dataset_count(ds), 1);
	skipped_is(ds, 3, "a.tar/1.gif", 0, NULL);
	dataset_close(ds);
}
END_TEST

/* -- Refusals -------------------------------------------------------------- */

START_TEST(test_a_folder_without_a_jpeg_says_what_it_has)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	put("d/a/1.gif");
	refused(&o, -ENODATA, "no JPEG or PNG below '");
	refused(&o, -ENODATA, "1 file skipped, the first is 'a/1.gif'");
	refused(&o, -ENODATA, "decode callback");
	put("d/a/.0.gif");
	refused(&o, -ENODATA, "2 files skipped, the first is 'a/.0.gif'");
	o = options_of(in_tree("e"), 0);
	put("e/train.tar.gz");
	refused(&o, -ENODATA, "unpack");
	sh("rm e/*");
	refused(&o, -ENODATA, "it is empty");
}
END_TEST

START_TEST(test_a_tar_without_a_jpeg_says_what_it_has)
{
	struct dataset_options o = options_of(in_tree("a.tar"), 0);

	put("1.gif");
	put("2.gif");
	sh("tar -cf a.tar 1.gif 2.gif");
	refused(&o, -ENODATA, "no JPEG in '");
	refused(&o, -ENODATA, "2 files skipped, the first is 'a.tar/1.gif'");
	o = options_of(tree, REFRAIN_SOURCE_TAR);
	sh("rm a.tar");
	refused(&o, -ENODATA, "no .tar file in '");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("examples_skipped");
	TCase *tc = case_with(s, "skipped", setup_tree, teardown_tree);

	tcase_add_test(
		tc, test_a_directory_without_a_jpeg_keeps_its_class_number);
	tcase_add_test(tc, test_every_directory_of_the_root_is_a_class);
	tcase_add_test(tc, test_nothing_is_skipped_of_a_folder_of_jpegs);
	tcase_add_test(
		tc, test_the_first_that_is_skipped_is_that_of_the_lowest_path);
	tcase_add_test(tc, test_a_table_of_index_has_the_classes_of_the_folder);
	tcase_add_test(
		tc, test_base_names_of_a_tar_without_an_image_are_skipped);
	tcase_add_test(tc, test_a_folder_without_a_jpeg_says_what_it_has);
	tcase_add_test(tc, test_a_tar_without_a_jpeg_says_what_it_has);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
