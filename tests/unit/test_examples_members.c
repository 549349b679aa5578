/* SPDX-License-Identifier: MIT */
/* Examples with several parts: how members are found, in every kind of dataset,
 * and how they are kept in the catalogue. */
#include <dirent.h>

#include "examples_fixture.h"
#include "loader/dataset/dataset_table_impl.h"
#include "suite.h"

static struct dataset *open_members(const char *path, const char *members)
{
	struct dataset_options o = options_of(path, 0);

	o.members = members;
	return open_with(&o);
}

/* Check that the part of the example has this name; NULL: check that the
 * example lacks the part. */
static void part_is(const struct dataset *ds, uint64_t index, uint32_t part,
	const char *name)
{
	struct example ex;
	bool there = dataset_part(ds, index, part, &ex);

	ck_assert_msg(there == (name != NULL), "part %u of %lu: %s", part,
		(unsigned long)index, there ? ex.name : "none");
	if (there)
		ck_assert_str_eq(ex.name, name);
}

/* Check that the part has the content of that file, which put() has written. */
static void part_holds(const struct dataset *ds, uint64_t index, uint32_t part,
	const char *text)
{
	struct example ex;
	char got[256] = "";
	int fd;

	ck_assert(dataset_part(ds, index, part, &ex));
	fd = openat(ex.dir, ex.file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, got, ex.whole ? sizeof(got) - 1 : ex.bytes,
				 (off_t)ex.offset),
		strlen(text));
	(void)close(fd);
	ck_assert_str_eq(got, text);
}

static uint64_t skipped(const struct dataset *ds, const char *first)
{
	struct dataset_skipped s;

	dataset_skipped(ds, &s);
	if (first)
		ck_assert_str_eq(s.first_file, first);
	return s.files;
}

/* -- Folders --------------------------------------------------------------- */

START_TEST(test_a_member_is_beside_its_image_under_the_same_stem)
{
	struct dataset *ds;

	put("d/a/1.jpg");
	put("d/a/1.json");
	put("d/a/1.seg.png");
	put("d/a/1.png");
	put("d/a/2020.01.jpg");
	put("d/a/2020.01.png");
	put("d/b/3.jpg");
	put("d/b/4.json"); /* a member of no image */
	put("d/b/.3.json");
	put("d/b/readme");
	ds = open_members(in_tree("d"), "json;seg.png,png");
	ck_assert_uint_eq(dataset_count(ds), 3);
	ck_assert_uint_eq(dataset_parts(ds), 3);
	example_is(ds, 0, "a/1.jpg", 0);
	part_is(ds, 0, 0, "a/1.jpg");
	part_is(ds, 0, 1, "a/1.json");
	part_is(ds, 0, 2, "a/1.seg.png");
	part_holds(ds, 0, 2, "d/a/1.seg.png");
	part_is(ds, 1, 1, NULL);
	part_is(ds, 1, 2, "a/2020.01.png");
	example_is(ds, 2, "b/3.jpg", 1);
	part_is(ds, 2, 1, NULL);
	part_is(ds, 2, 2, NULL);
	/* No example uses 1.png, the second choice, either. */
	ck_assert_uint_eq(skipped(ds, "a/1.png"), 4);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_folder_of_members_lies_beside_the_images_or_above)
{
	struct dataset *ds;

	put("d/images/x/1.jpg");
	put("d/images/2.jpg");
	put("d/images/masks/2.png");
	put("d/masks/x/1.png");
	put("d/masks/x/1.2.png");
	put("d/masks/2.png");
	put("d/masks/3.jpg"); /* this file is not an example */
	put("d/labels/x/1.txt");
	put("d/labels/x/1.xml");
	put("d/labels/images/2.txt");
	ds = open_members(in_tree("d"), "masks/;labels/txt");
	ck_assert_uint_eq(dataset_count(ds), 2);
	ck_assert_uint_eq(dataset_classes(ds), 1);
	class_is(ds, 0, "images");
	example_is(ds, 0, "images/2.jpg", 0);
	part_is(ds, 0, 1, "images/masks/2.png");
	part_is(ds, 0, 2, "labels/images/2.txt");
	part_is(ds, 1, 1, "masks/x/1.png");
	part_is(ds, 1, 2, "labels/x/1.txt");
	ck_assert_uint_eq(skipped(ds, "labels/x/1.xml"), 4);
	dataset_close(ds);
}
END_TEST

START_TEST(test_files_that_may_be_members_are_no_examples)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct dataset *ds;

	put("d/1.jpg");
	put("d/1.depth.jpg");
	put("d/2.ppm");
	put("d/2.json");
	o.members = "depth.jpg;json";
	o.any_file = true;
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 2);
	part_is(ds, 0, 1, "1.depth.jpg");
	part_is(ds, 1, 0, "2.ppm");
	part_is(ds, 1, 2, "2.json");
	ck_assert_uint_eq(skipped(ds, NULL), 0);
	dataset_close(ds);
}
END_TEST

/* -- Lists ----------------------------------------------------------------- */

START_TEST(test_members_of_a_list_are_found_in_its_directories)
{
	struct dataset *ds;

	put("d/images/x/1.jpg");
	put("d/images/x/1.json");
	put("d/images/2.jpg");
	put("d/masks/x/1.png");
	put("d/masks/images/2.png");
	put("d/3.jpg");
	put_text("d/list", "images/x/1.jpg\ta\n3.jpg\tb\nimages/2.jpg\ta\n");
	ds = open_members(in_tree("d/list"), "masks/;json");
	ck_assert_uint_eq(dataset_count(ds), 3);
	example_is(ds, 0, "3.jpg", 1);
	part_is(ds, 0, 1, NULL);
	part_is(ds, 1, 1, "masks/images/2.png");
	part_is(ds, 1, 2, NULL);
	part_is(ds, 2, 1, "masks/x/1.png");
	part_is(ds, 2, 2, "images/x/1.json");
	dataset_close(ds);
}
END_TEST

START_TEST(test_an_index_names_the_members_itself)
{
	struct dataset *ds;

	put_text("list",
		"# refrain index 2: path, size, mtime, tag, label\n"
		"images/1.jpg\t10\t5\t0\timages\n"
		"images/1.json\t3\t5\t0\timages\n"
		"masks/1.png\t4\t5\t0\tmasks\n"
		"masks/2.png\t4\t5\t0\tmasks\n");
	ds = open_members(in_tree("list"), "masks/;json");
	ck_assert_uint_eq(dataset_count(ds), 1);
	ck_assert_uint_eq(dataset_classes(ds), 1);
	part_is(ds, 0, 1, "masks/1.png");
	part_is(ds, 0, 2, "images/1.json");
	ck_assert_uint_eq(skipped(ds, "masks/2.png"), 1);
	dataset_close(ds);
}
END_TEST

/* -- Tars ------------------------------------------------------------------ */

START_TEST(test_members_of_a_tar_may_lie_anywhere_in_their_shard)
{
	struct dataset *ds;

	put("d/a.json");
	put("d/a.seg.png");
	put("d/b.json");
	put("d/b.jpg");
	put("d/a.jpg");
	put("d/b.txt");
	put("d/a.txt");
	put("d/c.txt");
	put("d/masks/b.png");
	put_text("d/b.cls", "7");
	sh("tar -cf x.tar -C d a.json b.txt a.seg.png b.json b.cls c.txt b.jpg "
	   "masks a.txt a.jpg");
	ds = open_members(in_tree("x.tar"), "json;txt;seg.png,masks/");
	ck_assert_uint_eq(dataset_count(ds), 2);
	/* the examples are the same as without members */
	example_is(ds, 0, "x.tar/a.jpg", -1);
	part_holds(ds, 0, 0, "d/a.jpg");
	part_holds(ds, 0, 1, "d/a.json");
	part_holds(ds, 0, 2, "d/a.txt");
	part_holds(ds, 0, 3, "d/a.seg.png");
	example_is(ds, 1, "x.tar/b.jpg", 7);
	part_holds(ds, 1, 1, "d/b.json");
	part_is(ds, 1, 1, "x.tar/b.json");
	part_holds(ds, 1, 2, "d/b.txt");
	part_holds(ds, 1, 3, "d/masks/b.png");
	ck_assert_uint_eq(skipped(ds, "x.tar/c.txt"), 1);
	dataset_close(ds);
}
END_TEST

START_TEST(test_members_of_one_shard_are_not_those_of_another)
{
	struct dataset *ds;

	put("1/a.jpg");
	put("1/a.txt");
	put("2/a.jpg");
	sh("mkdir d; tar -cf d/1.tar -C 1 a.txt a.jpg; "
	   "tar -cf d/2.tar -C 2 a.jpg");
	ds = open_members(in_tree("d"), "txt");
	ck_assert_uint_eq(dataset_count(ds), 2);
	part_holds(ds, 0, 1, "1/a.txt");
	part_is(ds, 1, 1, NULL);
	dataset_close(ds);
}
END_TEST

/* Append a header of a tar. The member is empty, or has only `name` if that is
 * a long name as GNU writes it. */
static void put_header(FILE *f, char type, const char *name)
{
	size_t n = strlen(name), data = type == 'L' ? n : 0;
	unsigned char h[512] = {0};
	unsigned sum = 0;

	if (n >= 100 && type != 'L')
		put_header(f, 'L', name);
	memcpy(h, name, n < 99 ? n : 99);
	(void)snprintf((char *)h + 124, 12, "%011o", (unsigned)data);
	memset(h + 148, ' ', 8);
	h[156] = (unsigned char)type;
	for (unsigned i = 0; i < sizeof(h); i++)
		sum += h[i];
	(void)snprintf((char *)h + 148, 7, "%06o", sum);
	ck_assert_uint_eq(fwrite(h, 1, sizeof(h), f), sizeof(h));
	ck_assert_uint_eq(fwrite(name, 1, data, f), data);
	memset(h, 0, sizeof(h));
	(void)fwrite(h, 1, (512 - data % 512) % 512, f);
}

/* Many members have the same stem, or many directories have the same name. Each
 * case took minutes while the time grew with the square of their number. */
START_TEST(test_a_hostile_tar_with_members_is_read_at_once)
{
	FILE *f = fopen(in_tree("x.tar"), "w");
	static char name[800016];
	struct dataset *ds;

	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; _i == 0 && i < 200000; i++) {
		(void)snprintf(name, sizeof(name), "x/a.%u.txt", i);
		put_header(f, '0', name);
	}
	for (unsigned i = 0; _i == 1 && i < sizeof(name) - 16; i += 2)
		memcpy(name + i, "d/", 2);
	if (_i == 1) {
		strcpy(name + sizeof(name) - 16, "x.jpg");
		put_header(f, '0', name);
	}
	put_header(f, '0', "x/a.jpg");
	put_header(f, '0', _i ? "m/x/a.txt" : "x/a.txt");
	memset(name, 0, 1024);
	ck_assert_uint_eq(fwrite(name, 1, 1024, f), 1024);
	ck_assert_int_eq(fclose(f), 0);
	ds = open_members(in_tree("x.tar"), "txt,m/");
	ck_assert_uint_eq(dataset_count(ds), 1 + (uint64_t)_i);
	part_is(ds, (uint64_t)_i, 1, _i ? "x.tar/m/x/a.txt" : "x.tar/x/a.txt");
	dataset_close(ds);
}
END_TEST

/* -- What is refused ------------------------------------------------------- */

START_TEST(test_a_member_that_no_example_has_is_refused)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	put("d/images/1.jpg");
	put("d/images/1.json");
	put("d/images/1.txt");
	put("d/labels/1.txt");
	sh("tar -cf x.tar -C d/images .");
	o.members = "json;seg.png,png";
	refused(&o, -ENODATA, "has the member 'seg.png' or 'png'; there are: ");
	ck_assert_ptr_nonnull(strstr(err.msg, "json"));
	ck_assert_ptr_nonnull(strstr(err.msg, "txt"));
	o.members = "masks/";
	refused(&o, -ENODATA, "labels/");
	o.path = in_tree("x.tar");
	o.members = "txt;cls";
	refused(&o, -ENODATA, "the member 'cls'; there are: ");
	ck_assert_ptr_nonnull(strstr(err.msg, "json"));
}
END_TEST

START_TEST(test_words_that_name_no_member_are_refused)
{
	static const char *const texts[] = {"", ";json", "json;", "json,,txt",
		".json", "/x", "a/b/c", "../x", "masks/.png",
		"a;b;c;d;e;f;g;h"};
	struct dataset_options o = options_of(in_tree("d"), 0);

	put("d/1.jpg");
	o.members = texts[_i];
	refused(&o, -EINVAL, "member");
}
END_TEST

START_TEST(test_records_have_no_members)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_RAW);

	o.record_bytes = 4;
	o.members = "json";
	refused(&o, -EINVAL, "members");
}
END_TEST

/* -- The catalogue --------------------------------------------------------- */

/* Returns the number of catalogues with this version in the cache folder. */
static unsigned catalogues(uint32_t version)
{
	struct dirent *d;
	unsigned n = 0;
	char path[512];
	DIR *all;

	(void)snprintf(path, sizeof(path), "%s/refrain", cache);
	all = opendir(path);
	while (all && (d = readdir(all))) {
		uint32_t words[3] = {0};
		int fd;

		if (d->d_name[0] == '.')
			continue;
		fd = openat(dirfd(all), d->d_name, O_RDONLY | O_CLOEXEC);
		ck_assert_int_eq(read(fd, words, sizeof(words)), 12);
		n += words[2] == version;
		(void)close(fd);
	}
	if (all)
		(void)closedir(all);
	return n;
}

START_TEST(test_members_are_kept_in_a_catalogue_of_their_own)
{
	struct dataset *ds;
	uint64_t plain, with;

	put("d/a/1.jpg");
	put("d/a/1.json");
	put("d/a/22.jpg");
	sh("tar --sort=name -cf x.tar -C d .");
	age();
	ds = open_as(in_tree(_i ? "x.tar" : "d"), 0);
	plain = dataset_fingerprint(ds);
	dataset_close(ds);
	for (unsigned i = 0; i < 3; i++) {
		ds = open_members(in_tree(_i ? "x.tar" : "d"), "json");
		with = dataset_fingerprint(ds);
		ck_assert_uint_ne(with, plain);
		ck_assert_int_eq(ds->map != NULL, i > 0);
		ck_assert_uint_eq(dataset_parts(ds), 2);
		part_is(ds, 0, 1, _i ? "x.tar/a/1.json" : "a/1.json");
		part_holds(ds, 0, 1, "d/a/1.json");
		part_is(ds, 1, 1, NULL);
		dataset_close(ds);
	}
	ck_assert_uint_eq(catalogues(4), 1);
	ck_assert_uint_eq(catalogues(5), 1);
	ds = open_as(in_tree(_i ? "x.tar" : "d"), 0);
	ck_assert_ptr_nonnull(ds->map);
	ck_assert_uint_eq(dataset_fingerprint(ds), plain);
	ck_assert_uint_eq(dataset_parts(ds), 1);
	dataset_close(ds);
}
END_TEST

START_TEST(test_a_member_that_comes_or_goes_is_seen)
{
	struct dataset_options o = options_of(in_tree("d/list"), 0);
	struct dataset *ds;

	put("d/a/1.jpg");
	put("d/a/1.json");
	put("d/a/2.jpg");
	put_text("d/list", "a/1.jpg\na/2.jpg\n");
	age();
	o.path = in_tree(_i ? "d/list" : "d");
	o.members = "json";
	dataset_close(open_with(&o));
	put("d/a/2.json");
	ds = open_with(&o);
	ck_assert_ptr_null(ds->map);
	part_is(ds, 1, 1, "a/2.json");
	dataset_close(ds);
}
END_TEST

/* The list is in another directory than the files. */
START_TEST(test_a_folder_of_members_that_comes_is_seen)
{
	struct dataset_options o = options_of(in_tree("list"), 0);
	struct dataset *ds;

	put("d/images/a/1.jpg");
	put("d/images/b/2.jpg");
	put("d/masks/a/1.png");
	put_text("list", "images/a/1.jpg\nimages/b/2.jpg\n");
	age();
	o.root = in_tree("d");
	o.members = "masks/";
	ds = open_with(&o);
	part_is(ds, 1, 1, NULL);
	dataset_close(ds);
	ds = open_with(&o);
	ck_assert_ptr_nonnull(ds->map);
	dataset_close(ds);
	put(_i ? "d/masks/images/b/2.png" : "d/masks/b/2.png");
	ds = open_with(&o);
	ck_assert_ptr_null(ds->map);
	part_is(ds, 1, 1, _i ? "masks/images/b/2.png" : "masks/b/2.png");
	dataset_close(ds);
}
END_TEST

/* If any byte is damaged, the dataset is scanned again; it never gives a wrong
 * answer. */
START_TEST(test_a_damaged_catalogue_with_members_is_not_used)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct dirent *d;
	char path[512];
	struct stat st;
	DIR *all;

	put("d/a/1.jpg");
	put("d/a/1.json");
	age();
	o.members = "json";
	dataset_close(open_with(&o));
	(void)snprintf(path, sizeof(path), "%s/refrain", cache);
	all = opendir(path);
	while ((d = readdir(all))) {
		if (d->d_name[0] != '.')
			(void)snprintf(path, sizeof(path), "%s/refrain/%s",
				cache, d->d_name);
	}
	(void)closedir(all);
	ck_assert_int_eq(stat(path, &st), 0);
	for (off_t i = 0; i < st.st_size; i += 1 + i / 64) {
		struct dataset *ds;
		char byte, other;
		int fd = open(path, O_RDWR | O_CLOEXEC);

		ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
		other = (char)(byte ^ 0x21);
		ck_assert_int_eq(pwrite(fd, &other, 1, i), 1);
		(void)close(fd);
		ds = open_with(&o);
		ck_assert_ptr_null(ds->map);
		part_is(ds, 0, 1, "a/1.json");
		dataset_close(ds);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("examples_members");
	TCase *t = case_with(s, "members", setup_tree, teardown_tree);

	tcase_add_test(
		t, test_a_member_is_beside_its_image_under_the_same_stem);
	tcase_add_test(
		t, test_a_folder_of_members_lies_beside_the_images_or_above);
	tcase_add_test(t, test_files_that_may_be_members_are_no_examples);
	tcase_add_test(t, test_members_of_a_list_are_found_in_its_directories);
	tcase_add_test(t, test_an_index_names_the_members_itself);
	tcase_add_test(
		t, test_members_of_a_tar_may_lie_anywhere_in_their_shard);
	tcase_add_test(t, test_members_of_one_shard_are_not_those_of_another);
	tcase_add_loop_test(
		t, test_a_hostile_tar_with_members_is_read_at_once, 0, 2);
	tcase_add_test(t, test_a_member_that_no_example_has_is_refused);
	tcase_add_loop_test(
		t, test_words_that_name_no_member_are_refused, 0, 10);
	tcase_add_test(t, test_records_have_no_members);
	tcase_add_loop_test(
		t, test_members_are_kept_in_a_catalogue_of_their_own, 0, 2);
	tcase_add_loop_test(t, test_a_member_that_comes_or_goes_is_seen, 0, 2);
	tcase_add_loop_test(
		t, test_a_folder_of_members_that_comes_is_seen, 0, 2);
	tcase_add_test(t, test_a_damaged_catalogue_with_members_is_not_used);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
