/* SPDX-License-Identifier: MIT */
/* Datasets from folders, lists and raw records: order, labels, refusals. */
#include <stdatomic.h>

#include "examples_fixture.h"
#include "suite.h"

/* -- Folders --------------------------------------------------------------- */

START_TEST(test_a_folder_is_in_the_order_of_sort)
{
	static const char *const names[] = {"a/x.jpg", "a-b/x.jpg", "a.jpg",
		"a/b/c.JPEG", "a/b.jpg", "a0/z.jpeg", "Z.jpg", "a!/q.jpg",
		"a/\377\376.jpg", "a/\001.jpg", "b/new\nline.jpg",
		"b/tab\t.jpg", "b/ .jpg", "\303\244/\303\266.jpg", "a/b-/c.jpg",
		"a/b/.jpg.jpg"};
	FILE *sorted;
	char line[256];
	struct dataset *ds;
	uint64_t i = 0;
	size_t n;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		put(names[k]);
	ds = open_as(tree, REFRAIN_SOURCE_FOLDER);
	(void)snprintf(line, sizeof(line),
		"cd %s && find . -type f ! -name '.*' -printf '%%P\\0' | "
		"LC_ALL=C sort -z",
		tree);
	sorted = popen(line, "r");
	ck_assert_ptr_nonnull(sorted);
	for (n = 0; (line[n] = (char)getc(sorted)), !feof(sorted);) {
		if (line[n++] != '\0')
			continue;
		ck_assert_str_eq(at(ds, i).file, line);
		ck_assert_str_eq(at(ds, i).name, line);
		ck_assert(at(ds, i).whole);
		i++, n = 0;
	}
	(void)pclose(sorted);
	ck_assert_uint_eq(i, sizeof(names) / sizeof(names[0]) - 1);
	ck_assert_uint_eq(i, dataset_count(ds));
	dataset_close(ds);
}
END_TEST

START_TEST(test_classes_are_in_the_order_of_their_names)
{
	struct dataset *ds;

	/* "a-/" comes before "a/", but "a" before "a-". */
	put("a/1.jpg");
	put("a-/2.jpg");
	put("10/3.jpg");
	put("9/deep/4.jpg");
	put("root.jpg");
	put("empty/readme.txt");
	ds = open_as(tree, REFRAIN_SOURCE_AUTO);
	ck_assert_uint_eq(dataset_count(ds), 5);
	ck_assert_uint_eq(dataset_classes(ds), 5);
	class_is(ds, 0, "10");
	class_is(ds, 1, "9");
	class_is(ds, 2, "a");
	class_is(ds, 3, "a-");
	class_is(ds, 4, "empty");
	ck_assert_ptr_null(dataset_class_name(ds, 5, NULL));
	example_is(ds, 0, "10/3.jpg", 0);
	example_is(ds, 1, "9/deep/4.jpg", 1);
	example_is(ds, 2, "a-/2.jpg", 3);
	example_is(ds, 3, "a/1.jpg", 2);
	example_is(ds, 4, "root.jpg", -1);
	dataset_close(ds);
}
END_TEST

START_TEST(test_only_images_count_unless_any_file_does)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);
	struct dataset *ds;

	put("c/1.jpg");
	put("c/2.JPEG");
	put("c/3.JpG");
	put("c/4.gif");
	put("c/jpg");
	put("c/.5.jpg");
	put(".hidden/6.jpg");
	put("lost+found/7.jpg");
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 3);
	dataset_close(ds);
	o.any_file = true;
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 5);
	example_is(ds, 4, "c/jpg", 1); /* class .hidden comes first */
	dataset_close(ds);
}
END_TEST

START_TEST(test_links_are_followed_but_in_circles)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct dataset *ds;

	put("d/c/1.jpg");
	put("far/5.jpg");
	sh("ln -s ../far d/out; ln -s .. d/c/loop; ln -s 1.jpg d/c/2.jpg; "
	   "ln -s none d/c/3.jpg; mkdir links; ln -s none links/1.jpg");
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 3);
	example_is(ds, 0, "c/1.jpg", 0);
	example_is(ds, 1, "c/2.jpg", 0);
	example_is(ds, 2, "out/5.jpg", 1);
	ck_assert_uint_eq(dataset_links(ds), 2);
	dataset_close(ds);
	o.path = in_tree("links");
	refused(&o, -ENODATA, "symbolic links");
}
END_TEST

START_TEST(test_a_folder_may_be_deep_and_its_names_long)
{
	char path[4096], name[256];
	struct dataset *ds;
	size_t n = 0;

	memset(name, 'n', 255);
	memcpy(name + 251, ".jpg", 5);
	put(name);
	for (unsigned i = 0; i < 300; i++)
		n += (size_t)sprintf(path + n, "dir%u/", i);
	strcpy(path + n, "x.jpg");
	put(path);
	ds = open_as(tree, REFRAIN_SOURCE_FOLDER);
	ck_assert_uint_eq(dataset_count(ds), 2);
	example_is(ds, 0, path, 0);
	example_is(ds, 1, name, -1);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_path_that_no_call_could_open_is_refused)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);

	put("a/1.jpg");
	/* Each name is short, but the whole path is longer than 4096 bytes. */
	sh("d=$(printf '%%0200d' 7); i=0; while [ $i -lt 21 ]; do mkdir $d && "
	   "cd -P $d || exit 1; i=$((i + 1)); done");
	refused(&o, -ENAMETOOLONG, "cannot list");
	sh("rm -rf 0*");
}
END_TEST

START_TEST(test_a_directory_that_cannot_be_read_is_a_failure)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);

	if (geteuid() == 0)
		return; /* root can read everything */
	put("a/1.jpg");
	put("b/2.jpg");
	sh("chmod 0 b");
	refused(&o, -EACCES, "/b");
	sh("chmod 755 b");
}
END_TEST

START_TEST(test_what_is_not_there_is_named)
{
	struct dataset_options o = options_of(in_tree("nothing"), 0);

	refused(&o, -ENOENT, "nothing");
	put("file.jpg");
	o = options_of(in_tree("file.jpg"), REFRAIN_SOURCE_FOLDER);
	refused(&o, -ENOTDIR, "file.jpg");
	o = options_of(tree, REFRAIN_SOURCE_LIST);
	refused(&o, -EINVAL, "directory");
	sh("mkdir empty");
	o = options_of(in_tree("empty"), 0);
	refused(&o, -ENODATA, "empty");
	o = options_of("", 0);
	refused(&o, -EINVAL, "dataset");
	o = options_of(tree, 17);
	refused(&o, -EINVAL, "17");
}
END_TEST

START_TEST(test_many_directories_are_looked_at_by_several_threads)
{
	struct dataset *one, *many;
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);

	sh("for i in $(seq 100); do mkdir -p $i/a $i/b; "
	   "touch $i/$i.jpg $i/a/1.jpg $i/b/2.jpg; done");
	o.threads = 1;
	one = open_with(&o);
	o.threads = 16;
	many = open_with(&o);
	ck_assert_uint_eq(dataset_count(one), 300);
	ck_assert_uint_eq(dataset_classes(one), 100);
	ck_assert_uint_eq(dataset_fingerprint(one), dataset_fingerprint(many));
	dataset_close(one);
	dataset_close(many);
}
END_TEST

START_TEST(test_an_open_that_is_cancelled_says_so)
{
	static _Atomic bool cancel = true;
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_FOLDER);

	put("a/1.jpg");
	o.cancel = &cancel;
	refused(&o, -ECANCELED, tree);
}
END_TEST

/* -- Lists ----------------------------------------------------------------- */

START_TEST(test_a_list_is_sorted_and_keeps_its_labels)
{
	struct dataset *ds;

	put_text("list.txt",
		"# a comment\n"
		"\n"
		"b/2.jpg\tdog\r\n"
		"./a/1.png\tcat\n"
		"c c/3\n"
		"a/1.png\tdog\tand cat\n"
		"z\t\n"
		"a\\n\t\377");
	ds = open_as(in_tree("list.txt"), REFRAIN_SOURCE_AUTO);
	ck_assert_uint_eq(dataset_count(ds), 6);
	class_is(ds, 0, "cat");
	class_is(ds, 1, "dog");
	class_is(ds, 2, "dog\tand cat");
	class_is(ds, 3, "\377");
	/* examples with equal paths are in the order of their lines */
	example_is(ds, 0, "a/1.png", 0);
	example_is(ds, 1, "a/1.png", 2);
	example_is(ds, 2, "a\\n", 3);
	example_is(ds, 3, "b/2.jpg", 1);
	example_is(ds, 4, "c c/3", -1);
	example_is(ds, 5, "z", -1);
	ck_assert_uint_eq(at(ds, 0).bytes, 0);
	dataset_close(ds);
}
END_TEST

START_TEST(test_labels_that_are_all_numbers_are_the_numbers)
{
	struct dataset *ds;

	put_text("list", "a\t10\nb\t9\nc\t2147483647\nd\n");
	ds = open_as(in_tree("list"), REFRAIN_SOURCE_LIST);
	example_is(ds, 0, "a", 10);
	example_is(ds, 1, "b", 9);
	example_is(ds, 2, "c", 2147483647);
	example_is(ds, 3, "d", -1);
	ck_assert_uint_eq(dataset_classes(ds), 2147483648);
	class_is(ds, 9, "9");
	ck_assert_ptr_null(dataset_class_name(ds, 0, NULL));
	dataset_close(ds);
	put_text("list", "a\t10\nb\t9\nc\t2147483648\n");
	ds = open_as(in_tree("list"), REFRAIN_SOURCE_LIST);
	example_is(ds, 0, "a", 0);
	example_is(ds, 1, "b", 2);
	dataset_close(ds);
	put_text("list", "a\t1\nb\t01\n");
	ds = open_as(in_tree("list"), REFRAIN_SOURCE_LIST);
	example_is(ds, 0, "a", 1);
	example_is(ds, 1, "b", 0);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_list_that_leaves_its_directory_is_refused_with_the_line)
{
	static const char *const bad[] = {"/etc/passwd", "../x", "a/../b",
		"a//b", "a/", ".", "", "\tlabel", "a/."};
	struct dataset_options o = options_of(in_tree("l"), 2);
	char text[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int n = snprintf(text, sizeof(text), "ok\n%s\nok\n", bad[i]);

		if (bad[i][0] == '\0') /* a blank line is ignored */
			continue;
		put_bytes("l", text, (size_t)n);
		refused(&o, -EBADMSG, "line 2");
	}
	put_bytes("l", "ok\nok\na\0b\n", 10);
	refused(&o, -EBADMSG, "line 3");
	put_text("l", "# nothing\n");
	refused(&o, -ENODATA, "no example");
}
END_TEST

START_TEST(test_what_is_no_list_is_named_with_what_to_do)
{
	static const struct {
		const char *text;
		size_t n;
		int code;
		const char *what, *todo;
	} files[] = {
		{"\xef\xbb\xbfok.jpg\n", 10, -EBADMSG, "byte order mark",
			"UTF-8 without one"},
		{"\xff\xfeo\0k\0\n\0", 8, -EBADMSG, "UTF-16", "UTF-8"},
		{"ok.jpg\n/data/x.jpg\n", 19, -EBADMSG,
			"line 2: the path is absolute", "root"},
		{"\x89PNG\r\n\x1a\n\0\0\0", 11, -EINVAL, "PNG image",
			"give its directory"},
		{"\xff\xd8\xff\xe0", 4, -EINVAL, "single image",
			"give its directory"},
		{"\x1f\x8b\x08\0\0", 5, -EINVAL, "gzip", "unpack"},
		{"PK\3\4", 4, -EINVAL, "zip", "unpack"},
		{"\1\0\0\0\2\0\0\0", 8, -EBADMSG, "NUL in the path",
			"source to raw"},
	};
	struct dataset_options o = options_of(in_tree("l"), 0);

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		put_bytes("l", files[i].text, files[i].n);
		refused(&o, files[i].code, files[i].what);
		refused(&o, files[i].code, files[i].todo);
	}
	put("x.jpg");
	sh("tar --format=ustar -cf l x.jpg");
	refused(&o, -EINVAL, "is a tar file; set source to tar");
}
END_TEST

START_TEST(test_a_list_has_a_root_of_its_own)
{
	struct dataset_options o = options_of(in_tree("l"), 2);
	struct dataset *ds;
	struct stat want, got;

	put_text("l", "x.jpg\n");
	put("root/x.jpg");
	o.root = in_tree("root");
	ds = open_with(&o);
	ck_assert_int_eq(stat(in_tree("root/x.jpg"), &want), 0);
	ck_assert_int_eq(fstatat(at(ds, 0).dir, at(ds, 0).file, &got, 0), 0);
	ck_assert_uint_eq(want.st_ino, got.st_ino);
	dataset_close(ds);
	o.root = in_tree("none");
	refused(&o, -ENOENT, "none");
}
END_TEST

/* The second list has tags, which no folder has. */
#define TABLE "# refrain index 1: path, size, mtime, label\n"
#define TABLE_TAGS "# refrain index 2: path, size, mtime, tag, label\n"

START_TEST(test_a_table_of_index_gives_what_the_folder_gives)
{
	struct dataset_options o = options_of(in_tree("l"), 0);
	struct dataset *folder, *list;

	put("d/a/new\nline.jpg");
	put("d/a/tab\t\\.jpg");
	put("d/10/1.jpg");
	put("d/9/1.JPEG");
	put("d/9/no.txt");
	put("d/.h/1.jpg");
	put("d/root.jpg");
	put_text("l",
		TABLE ".h/1.jpg\t3\t1.000000000\t.h\n"
		      "10/1.jpg\t70\t1.000000000\t10\n"
		      "9/1.JPEG\t5000000000\t-1.5\t9\n"
		      "9/no.txt\t1\t1.000000000\t9\n"
		      "a/new\\nline.jpg\t1\t1.000000000\ta\n"
		      "a/tab\\t\\\\.jpg\t1\t1.000000000\ta\n"
		      "root.jpg\t1\t1.000000000\t\n");
	folder = open_as(in_tree("d"), 0);
	o.root = in_tree("d");
	list = open_with(&o);
	ck_assert_uint_eq(dataset_count(list), 5);
	ck_assert_uint_eq(
		dataset_fingerprint(list), dataset_fingerprint(folder));
	ck_assert_uint_eq(at(list, 0).bytes, 70);
	ck_assert_uint_eq(at(list, 1).bytes, UINT32_MAX);
	/* classes .h, 10 and 9 come first */
	example_is(list, 2, "a/new\nline.jpg", 3);
	example_is(list, 3, "a/tab\t\\.jpg", 3);
	dataset_close(folder);
	dataset_close(list);
}
END_TEST

START_TEST(test_a_table_with_tags_is_the_same_dataset)
{
	struct dataset_options o = options_of(in_tree("l"), 0);
	struct dataset *plain, *tagged;

	put("d/9/1.JPEG");
	o.root = in_tree("d");
	put_text("l", TABLE "9/1.JPEG\t5\t-1.5\t9\nx/2.jpg\t6\t2.5\tx\n");
	plain = open_with(&o);
	put_text("l",
		TABLE_TAGS "9/1.JPEG\t5\t-1.5\t00f3000000000001\t9\n"
			   "x/2.jpg\t6\t2.5\t\tx\n");
	tagged = open_with(&o);
	ck_assert_uint_eq(dataset_count(tagged), 2);
	ck_assert_uint_eq(
		dataset_fingerprint(tagged), dataset_fingerprint(plain));
	ck_assert_uint_eq(at(tagged, 1).bytes, 6);
	example_is(tagged, 1, "x/2.jpg", 1);
	dataset_close(plain);
	dataset_close(tagged);
}
END_TEST

START_TEST(test_a_damaged_table_is_refused)
{
	static const char *const bad[] = {"a.jpg", "a.jpg\t1\t1",
		"a.jpg\tx\t1\tl", "a.jpg\t\t1\tl", "a.jpg\t1\t1\tl\tm",
		"a\\x.jpg\t1\t1\tl", "a.jpg\t1\t1\tl\\", "/a.jpg\t1\t1\tl"};
	struct dataset_options o = options_of(in_tree("l"), 0);
	char text[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(text, sizeof(text), TABLE "%s\n", bad[i]);
		put_text("l", text);
		refused(&o, -EBADMSG, "line 2");
	}
	put_text("l", TABLE_TAGS "a.jpg\t1\t1\tl\n");
	refused(&o, -EBADMSG, "5 fields");
	put_text("l", "# refrain index 2: path\na.jpg\n");
	refused(&o, -EBADMSG, "version");
	put_text("l", "# refrain index 4: path, size\na.jpg\n");
	refused(&o, -EBADMSG, "version");
}
END_TEST

/* -- Records --------------------------------------------------------------- */

START_TEST(test_records_are_computed_from_their_files)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_RAW);
	struct dataset *ds;
	struct example ex;

	put_bytes("b", "0123456789", 10);
	put_bytes("a", "01234567890123456789", 20);
	put_bytes("aa", "", 0);
	put_bytes("z", "", 0);
	put(".hidden");
	o.record_bytes = 5;
	o.label_bytes = 1;
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 6);
	ck_assert_uint_eq(dataset_shards(ds), 4);
	ck_assert_uint_eq(dataset_classes(ds), 0);
	ex = at(ds, 3);
	ck_assert_str_eq(ex.file, "a");
	ck_assert_uint_eq(ex.offset, 15);
	ck_assert_uint_eq(ex.bytes, 5);
	ck_assert(ex.label_in_record && !ex.whole);
	ex = at(ds, 5);
	ck_assert_str_eq(ex.file, "b");
	ck_assert_str_eq(dataset_shard_file(ds, ex.shard), "b");
	ck_assert_uint_eq(ex.offset, 5);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_file_that_is_no_whole_number_of_records_is_refused)
{
	struct dataset_options o = options_of(in_tree("a"), REFRAIN_SOURCE_RAW);

	put_bytes("a", "01234567", 8);
	o.record_bytes = 3;
	refused(&o, -EBADMSG, "2 bytes are left over");
	o.record_bytes = 0;
	refused(&o, -EINVAL, "record_bytes");
	o.record_bytes = 20;
	o.label_bytes = 9;
	refused(&o, -EINVAL, "label_bytes");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("examples");
	TCase *c = case_with(s, "sources", setup_tree, teardown_tree);

	tcase_add_test(c, test_a_folder_is_in_the_order_of_sort);
	tcase_add_test(c, test_classes_are_in_the_order_of_their_names);
	tcase_add_test(c, test_only_images_count_unless_any_file_does);
	tcase_add_test(c, test_links_are_followed_but_in_circles);
	tcase_add_test(c, test_a_folder_may_be_deep_and_its_names_long);
	tcase_add_test(c, test_a_path_that_no_call_could_open_is_refused);
	tcase_add_test(c, test_a_directory_that_cannot_be_read_is_a_failure);
	tcase_add_test(c, test_what_is_not_there_is_named);
	tcase_add_test(
		c, test_many_directories_are_looked_at_by_several_threads);
	tcase_add_test(c, test_an_open_that_is_cancelled_says_so);
	tcase_add_test(c, test_a_list_is_sorted_and_keeps_its_labels);
	tcase_add_test(c, test_labels_that_are_all_numbers_are_the_numbers);
	tcase_add_test(c,
		test_a_list_that_leaves_its_directory_is_refused_with_the_line);
	tcase_add_test(c, test_what_is_no_list_is_named_with_what_to_do);
	tcase_add_test(c, test_a_list_has_a_root_of_its_own);
	tcase_add_test(c, test_a_table_of_index_gives_what_the_folder_gives);
	tcase_add_test(c, test_a_table_with_tags_is_the_same_dataset);
	tcase_add_test(c, test_a_damaged_table_is_refused);
	tcase_add_test(c, test_records_are_computed_from_their_files);
	tcase_add_test(
		c, test_a_file_that_is_no_whole_number_of_records_is_refused);
	return run_suite(s);
}
