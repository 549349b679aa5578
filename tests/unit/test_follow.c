/* SPDX-License-Identifier: MIT */
/* Tests of nodes whose file has changed before it was read. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "mount/names/manifest.h"
#include "suite.h"

static struct manifest *m;
static node_id file;
static unsigned followed;
static struct file_version before;

static void note_event(void *arg, const struct manifest_event *ev)
{
	(void)arg;
	ck_assert_int_eq(ev->change, MANIFEST_FOLLOWED);
	ck_assert_str_eq(ev->name, "f");
	before = ev->old.attr.version;
	followed++;
}

static struct file_attr version(uint64_t size, int64_t mtime)
{
	return (struct file_attr){.kind = KIND_FILE,
		.mode = 0644,
		.version = {.size_bytes = size, .mtime_ns = mtime}};
}

static void setup(void)
{
	struct file_entry e = {.name = "f", .attr = version(10, 5)};
	struct node_info info;

	followed = 0;
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, true, &info, NULL, NULL), 0);
	file = info.id;
}

static void teardown(void)
{
	manifest_free(m);
}

static int follow(uint64_t size, int64_t mtime)
{
	struct file_attr attr = version(size, mtime);

	return manifest_follow(m, NODE_ROOT, "f", &attr, note_event, NULL);
}

static bool serve(uint64_t size, int64_t mtime)
{
	struct file_attr attr = version(size, mtime);

	return manifest_serve(m, file, &attr.version);
}

START_TEST(test_a_node_that_nobody_read_follows_a_new_version)
{
	struct file_version now;
	struct hash128 digest;
	struct node_info old, info;

	ck_assert_int_eq(manifest_get(m, file, &old), 0);
	ck_assert_int_eq(follow(10, 6), 0);
	ck_assert_uint_eq(followed, 1);
	ck_assert_int_eq(before.mtime_ns, 5);
	ck_assert_int_eq(manifest_get(m, file, &info), 0);
	ck_assert(!info.retired);
	ck_assert_uint_ne(info.ino, old.ino);
	ck_assert(manifest_identity(m, file, &digest, &now));
	ck_assert_int_eq(now.mtime_ns, 6);
	ck_assert(!serve(10, 5));
	ck_assert(serve(10, 6));
}
END_TEST

START_TEST(test_a_node_that_was_read_keeps_its_version)
{
	ck_assert(serve(10, 5));
	ck_assert_int_eq(follow(10, 6), -ESTALE);
	ck_assert(serve(10, 5));
	ck_assert_uint_eq(followed, 0);
}
END_TEST

START_TEST(test_a_node_follows_no_other_size_kind_or_retired_name)
{
	struct file_attr dir = version(10, 6);

	dir.kind = KIND_DIR;
	ck_assert_int_eq(follow(11, 6), -ESTALE);
	ck_assert_int_eq(follow(10, 5), -ESTALE);
	ck_assert_int_eq(
		manifest_follow(m, NODE_ROOT, "f", &dir, note_event, NULL),
		-ESTALE);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "f", NULL, NULL), 0);
	ck_assert_int_eq(follow(10, 6), -ESTALE);
	ck_assert_int_eq(
		manifest_follow(m, 999999, "f", &dir, note_event, NULL),
		-ESTALE);
	ck_assert(serve(10, 5));
}
END_TEST

#define READERS 3

static atomic_int served[READERS];

/* Read the version and serve it, as a READ does, and record what was served. */
static void *read_versions(void *arg)
{
	atomic_int *mine = arg;
	struct file_version v;
	struct hash128 digest;

	while (atomic_load(mine) == 0)
		if (manifest_identity(m, file, &digest, &v) &&
			manifest_serve(m, file, &v))
			atomic_store(mine, (int)v.mtime_ns);
	return NULL;
}

static void one_race(void)
{
	pthread_t threads[READERS];
	int64_t mtime = 5;

	for (int i = 0; i < READERS; i++) {
		atomic_store(&served[i], 0);
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
					 read_versions, &served[i]),
			0);
	}
	while (follow(10, mtime + 1) == 0)
		mtime++;
	for (int i = 0; i < READERS; i++)
		(void)pthread_join(threads[i], NULL);
	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(atomic_load(&served[i]), (int)mtime);
}

START_TEST(test_readers_that_race_with_changes_all_get_one_version)
{
	for (int i = 0; i < 200; i++) {
		teardown();
		setup();
		one_race();
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("follow");
	TCase *t = case_with(s, "follow", setup, teardown);

	tcase_add_test(t, test_a_node_that_nobody_read_follows_a_new_version);
	tcase_add_test(t, test_a_node_that_was_read_keeps_its_version);
	tcase_add_test(
		t, test_a_node_follows_no_other_size_kind_or_retired_name);
	tcase_add_test(
		t, test_readers_that_race_with_changes_all_get_one_version);
	return run_suite(s);
}
