/* SPDX-License-Identifier: MIT */
/* Tests of the manifest that is saved in a file and loaded again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "manifest_fixture.h"

static int keep_dir(char path[64])
{
	(void)snprintf(path, 64, "/tmp/refrain-manifest-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	return open(path, O_RDONLY | O_DIRECTORY);
}

static void keep_remove(const char *path, int fd)
{
	(void)unlinkat(fd, MANIFEST_FILE, 0);
	(void)close(fd);
	ck_assert_int_eq(rmdir(path), 0);
}

static void fill_some(void)
{
	struct node_info d = put(NODE_ROOT, "d", KIND_DIR, 0, 1, false);

	(void)put(d.id, "\xff\n", KIND_FILE, 1234567890123, -5, false);
	(void)put(d.id, "link", KIND_LINK, 9, 1, false);
	(void)put(NODE_ROOT, "gone", KIND_FILE, 1, 1, false);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "gone", NULL, NULL), 0);
	ck_assert_int_eq(manifest_list_end(m, d.id, manifest_list_begin(m) - 1,
				 NULL, NULL),
		0);
}

START_TEST(test_a_kept_manifest_is_the_same_after_loading)
{
	struct manifest_totals before, after;
	struct node_info a, b;
	char path[64], target[64];
	int fd = keep_dir(path);

	fill_some();
	manifest_totals(m, &before);
	ck_assert_int_eq(manifest_resolve(m, "d/\xff\n", &a), 0);
	ck_assert_int_eq(manifest_save(m, fd), 0);
	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(manifest_load(m, fd), 0);
	manifest_totals(m, &after);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_int_eq(manifest_resolve(m, "d/\xff\n", &b), 0);
	ck_assert_uint_eq(a.ino, b.ino);
	ck_assert_int_eq(b.attr.version.mtime_ns, -5);
	ck_assert_int_eq(manifest_resolve(m, "d/link", &b), 0);
	ck_assert_int_eq(manifest_target(m, b.id, target, sizeof(target)), 9);
	ck_assert_str_eq(target, "elsewhere");
	ck_assert_int_eq(manifest_resolve(m, "d", &b), 0);
	ck_assert(b.listed);
	ck_assert_int_eq(manifest_resolve(m, "", &b), 0);
	ck_assert(!b.listed);
	keep_remove(path, fd);
}
END_TEST

/* Append a record of version 1; see doc/formats.md. */
static size_t put_record(unsigned char *at, uint64_t size, int64_t mtime,
	uint32_t parent, uint16_t mode, uint16_t kind_flags, const char *name,
	const char *target)
{
	const uint16_t bytes[2] = {
		(uint16_t)strlen(name), (uint16_t)strlen(target)};

	memset(at, 0, 40);
	memcpy(at, &size, 8);
	memcpy(at + 8, &mtime, 8);
	memcpy(at + 16, &parent, 4);
	memcpy(at + 28, &mode, 2);
	memcpy(at + 30, &kind_flags, 2);
	memcpy(at + 32, bytes, 4);
	memcpy(at + 40, name, bytes[0]);
	memcpy(at + 40 + bytes[0], target, bytes[1]);
	return (size_t)40 + bytes[0] + bytes[1];
}

/* Write the manifest that fill_some() makes, in the format of the first
 * version. */
static size_t old_manifest(unsigned char *file)
{
	const uint32_t words[2] = {1, 64};
	const struct hash128 dataset = hash128("/data", 5);
	unsigned char *body = file + 64;
	uint64_t n = 0, records = 4, hash;

	n += put_record(body, 0, 0, 0, 0755, 2, "", "");
	n += put_record(body + n, 0, 1, 0, 0644, 2 | 1 << 8, "d", "");
	n += put_record(body + n, 1234567890123, -5, 1, 0644, 1, "\xff\n", "");
	n += put_record(body + n, 9, 1, 1, 0644, 3, "link", "elsewhere");
	memcpy(file, "refrmani", 8);
	memcpy(file + 8, words, 8);
	memcpy(file + 16, &dataset, 16);
	memcpy(file + 32, &records, 8);
	memcpy(file + 40, &n, 8);
	hash = hash64(body, n, 1);
	memcpy(file + 48, &hash, 8);
	hash = hash64(file, 56, 1);
	memcpy(file + 56, &hash, 8);
	return 64 + n;
}

START_TEST(test_a_manifest_of_the_first_version_can_be_loaded)
{
	unsigned char bytes[4096];
	size_t n = old_manifest(bytes);
	struct node_info info;
	char path[64];
	int file, fd = keep_dir(path);

	ck_assert_uint_eq(n, 240);
	/* The bytes must be those that version 1 has written. */
	ck_assert_uint_eq(hash64(bytes, n, 0), UINT64_C(11889723970423916288));
	file = openat(fd, MANIFEST_FILE, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(write(file, bytes, n), (ssize_t)n);
	(void)close(file);
	ck_assert_int_eq(manifest_load(m, fd), 0);
	ck_assert_int_eq(manifest_resolve(m, "d/\xff\n", &info), 0);
	ck_assert_uint_eq(info.attr.version.size_bytes, 1234567890123);
	ck_assert_int_eq(manifest_resolve(m, "d", &info), 0);
	ck_assert(info.listed);
	keep_remove(path, fd);
}
END_TEST

START_TEST(test_a_kept_manifest_has_its_tags)
{
	struct node_info a, b;
	char path[64];
	int fd = keep_dir(path);

	fill_some();
	a = put_tagged("a", UINT64_C(0x8000000000000001));
	ck_assert_int_eq(manifest_save(m, fd), 0);
	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(manifest_load(m, fd), 0);
	ck_assert_int_eq(manifest_resolve(m, "a", &b), 0);
	ck_assert_uint_eq(b.ino, a.ino);
	ck_assert(version_equal(a.attr.version, b.attr.version));
	ck_assert_int_eq(manifest_resolve(m, "d/\xff\n", &b), 0);
	ck_assert_uint_eq(b.attr.version.tag, 0);
	keep_remove(path, fd);
}
END_TEST

/* Versions have tags if _i is set. */
START_TEST(test_every_flip_and_every_cut_of_a_kept_manifest_is_found)
{
	unsigned char bytes[4096];
	struct manifest *other;
	char path[64];
	int fd = keep_dir(path);
	ssize_t n;
	int file;

	fill_some();
	if (_i)
		(void)put_tagged("a", 1);
	ck_assert_int_eq(manifest_save(m, fd), 0);
	file = openat(fd, MANIFEST_FILE, O_RDWR);
	n = pread(file, bytes, sizeof(bytes), 0);
	ck_assert_int_gt(n, 64);
	for (ssize_t i = 0; i < n; i++) {
		unsigned char flipped = bytes[i] ^ 0x10;

		ck_assert_int_eq(pwrite(file, &flipped, 1, i), 1);
		ck_assert_int_eq(manifest_new(&other, "/data"), 0);
		ck_assert_int_eq(manifest_load(other, fd), -EBADMSG);
		manifest_free(other);
		ck_assert_int_eq(pwrite(file, &bytes[i], 1, i), 1);
	}
	for (ssize_t i = n - 1; i >= 0; i--) {
		ck_assert_int_eq(ftruncate(file, i), 0);
		ck_assert_int_eq(manifest_new(&other, "/data"), 0);
		ck_assert_int_eq(manifest_load(other, fd), -EBADMSG);
		manifest_free(other);
	}
	(void)close(file);
	keep_remove(path, fd);
}
END_TEST

static void *save_main(void *arg)
{
	char name[32];
	struct file_entry e = {
		.name = name, .attr = {.kind = KIND_FILE, .mode = 0644}};

	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof(name), "%p-%d", arg, i);
		ck_assert_int_eq(manifest_put(m, NODE_ROOT, &e, 0, false, NULL,
					 NULL, NULL),
			0);
		ck_assert_int_eq(manifest_save(m, *(int *)arg), 0);
	}
	return NULL;
}

START_TEST(test_a_manifest_that_several_keep_at_once_can_be_loaded)
{
	pthread_t thread[4];
	struct manifest *other;
	char path[64];
	int fd = keep_dir(path);
	int fds[4] = {fd, fd, fd, fd};

	fill_some();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, save_main, &fds[i]),
			0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(manifest_new(&other, "/data"), 0);
	ck_assert_int_eq(manifest_load(other, fd), 0);
	manifest_free(other);
	keep_remove(path, fd);
}
END_TEST

START_TEST(test_the_manifest_of_another_dataset_is_refused)
{
	struct manifest *other;
	char path[64];
	int fd = keep_dir(path);

	ck_assert_int_eq(manifest_load(m, fd), -ENOENT);
	ck_assert_int_eq(manifest_save(m, fd), 0);
	ck_assert_int_eq(manifest_new(&other, "/other"), 0);
	ck_assert_int_eq(manifest_load(other, fd), -EBADMSG);
	manifest_free(other);
	keep_remove(path, fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("manifest-kept");
	TCase *t = case_with(s, "kept", setup, teardown);

	tcase_add_test(t, test_a_kept_manifest_is_the_same_after_loading);
	tcase_add_test(t, test_a_manifest_of_the_first_version_can_be_loaded);
	tcase_add_test(t, test_a_kept_manifest_has_its_tags);
	tcase_add_loop_test(t,
		test_every_flip_and_every_cut_of_a_kept_manifest_is_found, 0,
		2);
	tcase_add_test(
		t, test_a_manifest_that_several_keep_at_once_can_be_loaded);
	tcase_add_test(t, test_the_manifest_of_another_dataset_is_refused);
	return run_suite(s);
}
