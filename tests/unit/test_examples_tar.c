/* SPDX-License-Identifier: MIT */
/* Datasets from tars: every format that tar(1) writes, WebDataset's names,
 * damage. */
#include "examples_fixture.h"
#include "suite.h"

#define BLOCK 512

/* Compare the bytes of the example with those of a file of the tree. */
static void holds(const struct dataset *ds, uint64_t i, const char *path)
{
	struct example ex = at(ds, i);
	char want[4096], got[4096];
	int fd = open(in_tree(path), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, want, sizeof(want));

	ck_assert_int_eq(n, (ssize_t)ex.bytes);
	(void)close(fd);
	fd = openat(ex.dir, ex.file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, got, ex.bytes, (off_t)ex.offset), n);
	(void)close(fd);
	ck_assert_mem_eq(got, want, (size_t)n);
	ck_assert(!ex.whole);
	ck_assert_str_eq(ex.file, dataset_shard_file(ds, ex.shard));
}

static void put_long(char *path, size_t n, const char *dir)
{
	size_t at = strlen(dir);

	memcpy(path, dir, at);
	memset(path + at, 'x', n);
	memcpy(path + at + n, ".jpg", 5);
	put(path);
}

START_TEST(test_every_format_of_tar_is_read)
{
	static const char *const formats[] = {"ustar", "gnu", "pax", "v7"};
	const char *format = formats[_i];
	char longer[300], name[400];
	struct dataset *ds;
	bool v7 = strcmp(format, "v7") == 0, odd = !v7;

	put("d/a/1.jpg");
	put("d/b/2.jpg");
	put("d/b/\303\244 \377.jpg");
	sh("ln d/b/2.jpg d/b/hard.jpg; ln -s 2.jpg d/b/soft.jpg");
	if (odd)
		put_long(longer, 90,
			"d/a/"
			"0123456789012345678901234567890123456789/");
	sh("tar --format=%s --sort=name -cf x.tar -C d .", format);
	ds = open_as(in_tree("x.tar"), REFRAIN_SOURCE_AUTO);
	ck_assert_uint_eq(dataset_count(ds), 3 + odd);
	ck_assert_uint_eq(dataset_shards(ds), 1);
	ck_assert_uint_eq(dataset_classes(ds), 2);
	class_is(ds, 0, "a");
	class_is(ds, 1, "b");
	if (odd) {
		(void)snprintf(name, sizeof(name), "x.tar/%s", longer + 2);
		example_is(ds, 0, name, 0);
		holds(ds, 0, longer);
	}
	holds(ds, odd, "d/a/1.jpg");
	example_is(ds, 1 + odd, "x.tar/b/2.jpg", 1);
	holds(ds, 1 + odd, "d/b/2.jpg");
	example_is(ds, 2 + odd, "x.tar/b/\303\244 \377.jpg", 1);
	dataset_close(ds);
}
END_TEST

START_TEST(test_very_long_names_are_read)
{
	static const char *const formats[] = {"gnu", "pax"};
	char path[2000] = "d/", name[2100];
	struct dataset *ds;

	for (unsigned i = 0; i < 8; i++) {
		memset(path + strlen(path), 'a' + (int)i, 200);
		strcpy(path + 2 + (i + 1) * 201 - 1, "/");
	}
	strcat(path, "x.jpg");
	put(path);
	sh("tar --format=%s -cf x.tar -C d .", formats[_i]);
	(void)snprintf(name, sizeof(name), "x.tar/%s", path + 2);
	ds = open_as(in_tree("x.tar"), REFRAIN_SOURCE_TAR);
	example_is(ds, 0, name, 0);
	holds(ds, 0, path);
	dataset_close(ds);
}
END_TEST

START_TEST(test_members_of_one_base_name_are_one_example)
{
	struct dataset_options o = options_of(tree, REFRAIN_SOURCE_AUTO);
	struct dataset *ds;

	put_text("0.json", "{}");
	put_text("0.cls", " 7\n");
	put("0.jpg");
	put("0.seg.jpg");
	put("1.seg.jpg");
	put("1.jpeg");
	put("2.jpg");
	put_text("2.cls", "12");
	put_text("3.cls", "13"); /* sample 3 has no image */
	put("4.seg.JPG");
	put("._5.jpg");
	put("6.npy");
	sh("tar -cf b.tar 0.json 0.seg.jpg 0.cls 1.jpeg 1.seg.jpg 0.jpg ._5.jpg"
	   " && tar -cf a.tar 3.cls 2.cls 6.npy 2.jpg 4.seg.JPG");
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 4);
	ck_assert_uint_eq(dataset_shards(ds), 2);
	example_is(ds, 0, "a.tar/2.jpg", 12);
	example_is(ds, 1, "a.tar/4.seg.JPG", -1);
	example_is(ds, 2, "b.tar/0.jpg", 7);
	example_is(ds, 3, "b.tar/1.jpeg", -1);
	holds(ds, 2, "0.jpg");
	ck_assert_uint_eq(dataset_classes(ds), 13);
	dataset_close(ds);
	o.any_file = true;
	ds = open_with(&o);
	ck_assert_uint_eq(dataset_count(ds), 5);
	example_is(ds, 1, "a.tar/6.npy", -1);
	example_is(ds, 3, "b.tar/0.seg.jpg", 7);
	dataset_close(ds);
}
END_TEST

START_TEST(test_labels_that_are_words_are_classes)
{
	struct dataset *ds;

	put("x/a.jpg");
	put_text("x/a.cls", "dog");
	put("x/b.jpg");
	put_text("x/b.cls", "2");
	put("x/c.jpg");
	put_text("x/c.cls", "\n");
	sh("tar --sort=name -cf t.tar x");
	ds = open_as(in_tree("t.tar"), 0);
	example_is(ds, 0, "t.tar/x/a.jpg", 1);
	example_is(ds, 1, "t.tar/x/b.jpg", 0);
	example_is(ds, 2, "t.tar/x/c.jpg", -1);
	class_is(ds, 0, "2");
	class_is(ds, 1, "dog");
	dataset_close(ds);
}
END_TEST

START_TEST(test_sizes_of_over_eight_gigabytes_are_understood)
{
	static const char *const formats[] = {"gnu", "pax"};
	struct dataset *ds;
	int headers = _i == 0 ? BLOCK : 3 * BLOCK;
	int fd = open(in_tree("big.jpg"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_eq(ftruncate(fd, (off_t)9 << 30), 0);
	(void)close(fd);
	/* A tar with its headers, and a hole in place of the data and the end
	 * mark. */
	sh("tar --format=%s -cf - big.jpg 2>/dev/null | head -c %d >t.tar && "
	   "truncate -s %lld t.tar",
		formats[_i], headers, headers + ((long long)9 << 30) + 1024);
	ds = open_as(in_tree("t.tar"), 0);
	ck_assert_uint_eq(dataset_count(ds), 1);
	ck_assert_uint_eq(at(ds, 0).offset, (uint64_t)headers);
	ck_assert_uint_eq(at(ds, 0).bytes, (uint64_t)9 << 30);
	dataset_close(ds);
}
END_TEST

START_TEST(test_sparse_members_are_refused)
{
	static const char *const how[] = {"--format=gnu",
		"--format=pax --sparse-version=0.0",
		"--format=pax --sparse-version=0.1",
		"--format=pax --sparse-version=1.0"};
	struct dataset_options o = options_of(in_tree("t.tar"), 0);

	sh("truncate -s 1M s.jpg && echo x >>s.jpg && tar %s -S -cf t.tar "
	   "s.jpg",
		how[_i]);
	refused(&o, -EBADMSG, "sparse");
}
END_TEST

START_TEST(test_a_tar_that_is_cut_off_is_refused_wherever)
{
	struct dataset_options o = options_of(in_tree("t.tar"), 0);
	struct stat st;
	off_t whole;

	put("a/1.jpg");
	put_text("a/1.cls", "3");
	put("a/2.jpg");
	sh("tar --format=pax -b 1 -cf t.tar a");
	ck_assert_int_eq(stat(in_tree("t.tar"), &st), 0);
	whole = st.st_size - 2 * BLOCK; /* size without the end mark */
	for (off_t n = whole; n >= 0; n -= n % BLOCK == 0 ? 1 : 73) {
		ck_assert_int_eq(truncate(in_tree("t.tar"), n), 0);
		refused(&o, -EBADMSG, "at offset");
	}
}
END_TEST

START_TEST(test_a_changed_header_is_refused_with_its_place)
{
	struct dataset_options o = options_of(in_tree("t.tar"), 0);
	unsigned char byte;
	int fd;

	put("1.jpg");
	put("2.jpg");
	sh("tar --format=ustar -cf t.tar 1.jpg 2.jpg");
	fd = open(in_tree("t.tar"), O_RDWR | O_CLOEXEC);
	for (off_t i = 2 * BLOCK; i < 3 * BLOCK - 12; i += 7) {
		ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
		byte ^= 0x11;
		ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
		refused(&o, -EBADMSG, "at offset 1024");
		byte ^= 0x11;
		ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
	}
	(void)close(fd);
	dataset_close(open_as(in_tree("t.tar"), 0));
	put_text("t.tar", "no tar at all");
	refused(&o, -EBADMSG, "at offset 0");
	put_text("t.tar", "");
	refused(&o, -EBADMSG, "at offset 0");
}
END_TEST

/* Returns the path of a file in the folder with shared data, or NULL. */
static const char *data_file(const char *name)
{
	static char path[4096];
	const char *dir = getenv("REFRAIN_TEST_DATA");
	const char *src = getenv("srcdir");

	if (dir)
		(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	else
		(void)snprintf(path, sizeof(path), "%s/../shared/data/%s",
			src ? src : ".", name);
	return access(path, R_OK) == 0 ? path : NULL;
}

START_TEST(test_a_tar_and_its_folder_have_the_same_examples)
{
	const char *tar = data_file("imagenet-500.tar");
	struct dataset *packed, *folder;
	char *real;

	if (!tar)
		return; /* the shared data are not part of this tree */
	real = realpath(tar, NULL);
	sh("mkdir d && tar -xf %s -C d", real);
	packed = open_as(real, 0);
	folder = open_as(in_tree("d"), 0);
	ck_assert_uint_gt(dataset_count(folder), 0);
	ck_assert_uint_eq(dataset_count(packed), dataset_count(folder));
	for (uint64_t i = 0; i < dataset_count(folder); i++) {
		struct stat st;

		ck_assert_int_eq(
			fstatat(at(folder, 0).dir,
				strchr(at(packed, i).name, '/') + 1, &st, 0),
			0);
		ck_assert_int_eq(st.st_size, (off_t)at(packed, i).bytes);
	}
	dataset_close(packed);
	dataset_close(folder);
	free(real);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("examples_tar");
	TCase *c = case_with(s, "tar", setup_tree, teardown_tree);

	tcase_add_loop_test(c, test_every_format_of_tar_is_read, 0, 4);
	tcase_add_loop_test(c, test_very_long_names_are_read, 0, 2);
	tcase_add_test(c, test_members_of_one_base_name_are_one_example);
	tcase_add_test(c, test_labels_that_are_words_are_classes);
	tcase_add_loop_test(
		c, test_sizes_of_over_eight_gigabytes_are_understood, 0, 2);
	tcase_add_loop_test(c, test_sparse_members_are_refused, 0, 4);
	tcase_add_test(c, test_a_tar_that_is_cut_off_is_refused_wherever);
	tcase_add_test(c, test_a_changed_header_is_refused_with_its_place);
	tcase_add_test(c, test_a_tar_and_its_folder_have_the_same_examples);
	return run_suite(s);
}
