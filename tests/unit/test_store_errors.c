/* SPDX-License-Identifier: MIT */
/*
 * Errors of the store, each in one line that names the object and the remedy;
 * also checking and clearing a tier directory.
 */
#include "store_case.h"
#include "suite.h"

#include <errno.h>
#include <sys/statvfs.h>

/* Check that the message is one line and has all of these words, which end with
 * NULL. */
static void check_message(const char *const *words)
{
	ck_assert_ptr_null(strchr(fx.err.msg, '\n'));
	for (; *words; words++)
		ck_assert_msg(strstr(fx.err.msg, *words), "no '%s' in: %s",
			*words, fx.err.msg);
}

#define CHECK_MESSAGE(...)                                                     \
	check_message((const char *const[]){__VA_ARGS__, NULL})

static int open_one(const char *dataset, const char *dir, const char *size)
{
	struct store_config config = {.dataset = dataset, .ntiers = 1};
	struct store *s = NULL;
	int rc;

	config.tiers[0] = (struct tier_config){.dir = dir, .size = size};
	rc = store_open(&s, &config, &fx.counters, &fx.err);
	store_close(s);
	return rc;
}

static void touch(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_store_refuses_a_size_that_is_nonsense)
{
	ck_assert_int_eq(open_one("d", fx.dirs[0], "12Q"), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], "12Q");
	ck_assert_int_eq(open_one("d", fx.dirs[0], "0"), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], "zero", ":10G");
	/* No file is left behind. */
	ck_assert_int_ne(access(fx.dirs[0], F_OK), 0);
}
END_TEST

START_TEST(test_store_refuses_a_size_over_the_file_system)
{
	ck_assert_int_eq(open_one("d", fx.dirs[0], "900000T"), -EFBIG);
	CHECK_MESSAGE(fx.dirs[0], "900000T", "larger than its file system");
	ck_assert_int_ne(access(fx.dirs[0], F_OK), 0);
}
END_TEST

START_TEST(test_store_takes_a_percentage_of_the_file_system)
{
	struct tier_status st;
	struct statvfs fs;
	const char *size = "10%";

	ck_assert_int_eq(statvfs(fx.root, &fs), 0);
	ck_assert_int_eq(fixture_open(&fx, 1, &size), 0);
	store_tier_status(fx.store, 0, &st);
	ck_assert_uint_ge(st.capacity_bytes, fs.f_blocks / 11 * fs.f_frsize);
	ck_assert_uint_le(st.capacity_bytes,
		fs.f_blocks / 10 * fs.f_frsize + fs.f_frsize);
}
END_TEST

START_TEST(test_store_refuses_what_is_no_directory)
{
	char path[100];

	touch(fx.root, "file", "");
	(void)snprintf(path, sizeof(path), "%s/file", fx.root);
	ck_assert_int_eq(open_one("d", path, "1M"), -ENOTDIR);
	CHECK_MESSAGE(path, "not a directory", "choose");
	(void)snprintf(path, sizeof(path), "%s/no/parent", fx.root);
	ck_assert_int_eq(open_one("d", path, "1M"), -ENOENT);
	CHECK_MESSAGE(path, "create its parent");
}
END_TEST

START_TEST(test_store_refuses_a_directory_that_it_cannot_write)
{
	ck_assert_int_eq(mkdir(fx.dirs[0], 0500), 0);
	if (geteuid() == 0) { /* root ignores modes */
		ck_assert_int_eq(chown(fx.dirs[0], 12345, 12345), 0);
		ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), -EPERM);
		CHECK_MESSAGE(fx.dirs[0], "12345", "your own");
		return;
	}
	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), -EACCES);
	CHECK_MESSAGE(fx.dirs[0], "cannot write", "choose");
}
END_TEST

START_TEST(test_store_refuses_a_directory_with_somebodys_files)
{
	ck_assert_int_eq(mkdir(fx.dirs[0], 0700), 0);
	touch(fx.dirs[0], "thesis.tex", "");
	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), -ENOTEMPTY);
	CHECK_MESSAGE(fx.dirs[0], "neither a cache nor empty", "thesis.tex",
		"choose");
	touch(fx.root, "file", "");
	ck_assert_int_eq(open_one("d", fx.root, "1M"), -ENOTEMPTY);
}
END_TEST

START_TEST(test_store_takes_what_a_killed_start_left)
{
	ck_assert_int_eq(mkdir(fx.dirs[0], 0700), 0);
	touch(fx.dirs[0], "refrain-lock", "4711\n");
	touch(fx.dirs[0], "refrain-tier.new", "refrain ti");
	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), 0);
	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), 0);
}
END_TEST

/* Delete files that a program that cleans up may delete from the first
 * directory. */
static void clean(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", fx.dirs[0], name);
	ck_assert_int_eq(unlink(path), 0);
}

static void make_unmarked_tier(void)
{
	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 5; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	fixture_close(&fx);
	touch(fx.dirs[0], "manifest", "refrmani and more");
	touch(fx.dirs[0], "tmp/00ff00ff00ff00ff00ff00ff00ff00ff-1", "x");
	clean("refrain-tier");
	clean("refrain-lock");
}

static unsigned int identities_reported;

static void count_identities(void *arg, const struct event *e)
{
	(void)arg;
	identities_reported += e->kind == EVENT_TIER_IDENTITY;
}

START_TEST(test_store_takes_a_tier_that_lost_its_identity)
{
	const struct event_sink sink = {.report = count_identities};
	struct store_config config = {
		.dataset = "other", .ntiers = 1, .events = &sink};
	struct tier_status st;

	make_unmarked_tier();
	config.tiers[0] =
		(struct tier_config){.dir = fx.dirs[0], .size = "10M"};
	ck_assert_int_eq(
		store_open(&fx.store, &config, &fx.counters, &fx.err), 0);
	ck_assert_uint_eq(identities_reported, 1);
	store_wait_ready(fx.store);
	store_tier_status(fx.store, 0, &st);
	ck_assert_uint_eq(st.entries, 5);
	/* Entries that belong to no file of the dataset are swept. */
	store_unmark_all(fx.store);
	ck_assert_uint_eq(store_sweep(fx.store), 5);
	store_tier_status(fx.store, 0, &st);
	ck_assert_uint_eq(st.used_bytes, 0);
	fixture_close(&fx);
	ck_assert_int_eq(open_one("third", fx.dirs[0], "10M"), -EEXIST);
	CHECK_MESSAGE("'other'");
}
END_TEST

START_TEST(test_clear_takes_a_tier_that_lost_its_identity)
{
	uint64_t n;

	make_unmarked_tier();
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), 0);
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(rmdir(fx.dirs[0]), 0);
}
END_TEST

/* Each of these names almost looks like a name of a tier, and is alone in a
 * directory. */
START_TEST(test_store_refuses_an_unmarked_tier_for_one_foreign_name)
{
	static const char *const names[][2] = {
		{"thesis.tex", ""},
		{"manifest", "mine"},
		{"manifest.new", ""},
		{"manifest2", "refrmani"},
		{"a0", "a file"},
		{"A0", ""},
		{"00/notes", ""},
		{"01/00ff00ff00ff00ff00ff00ff00ff00ff-1", ""},
		{"00/00ff00ff00ff00ff00ff00ff00ff00ff-01", ""},
		{"00/00FF00ff00ff00ff00ff00ff00ff00ff-1", ""},
		{"tmp/left", ""},
		{"tmp/00ff00ff00ff00ff00ff00ff00ff00ff", ""},
	};
	char path[200];
	uint64_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_unmarked_tier();
		(void)snprintf(path, sizeof(path), "%s/a0", fx.dirs[0]);
		/* this path is a directory in some cases */
		(void)rmdir(path);
		touch(fx.dirs[0], names[i][0], names[i][1]);
		ck_assert_int_eq(
			store_clear_dir(fx.dirs[0], &n, &fx.err), -EINVAL);
		CHECK_MESSAGE(fx.dirs[0], "not a cache", names[i][0]);
		ck_assert_int_eq(open_one("d", fx.dirs[0], "10M"), -ENOTEMPTY);
		CHECK_MESSAGE(
			fx.dirs[0], "neither a cache nor empty", names[i][0]);
		clean(names[i][0]);
		(void)snprintf(path, sizeof(path), "%s/manifest", fx.dirs[0]);
		/* remove one of the two files, which may not exist any more */
		(void)unlink(path);
		ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), 0);
		ck_assert_uint_eq(n, 5);
	}
}
END_TEST

/* Directories and links in the place of files, and links in the place of
 * directories. */
START_TEST(test_store_refuses_foreign_kinds_in_an_unmarked_tier)
{
	const char *name = "00/00ff00ff00ff00ff00ff00ff00ff00ff-1";
	char path[200];
	uint64_t n;

	make_unmarked_tier();
	(void)snprintf(path, sizeof(path), "%s/%s", fx.dirs[0], name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(open_one("d", fx.dirs[0], "10M"), -ENOTEMPTY);
	CHECK_MESSAGE(fx.dirs[0], name);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], name);
	ck_assert_int_eq(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/tmp", fx.dirs[0]);
	clean("tmp/00ff00ff00ff00ff00ff00ff00ff00ff-1");
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("/tmp", path), 0);
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], "'tmp'");
}
END_TEST

/* The lock of the tier also locks its directory. */
START_TEST(test_store_refuses_a_tier_in_use_whose_files_were_deleted)
{
	uint64_t n;

	fixture_open_one(&fx, "1M");
	clean("refrain-lock");
	ck_assert_int_eq(open_one("/data/set", fx.dirs[0], "1M"), -EBUSY);
	clean("refrain-tier");
	ck_assert_int_eq(open_one("/data/set", fx.dirs[0], "1M"), -EBUSY);
	CHECK_MESSAGE(fx.dirs[0], "in use");
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), -EBUSY);
}
END_TEST

START_TEST(test_store_refuses_a_tier_of_another_dataset)
{
	ck_assert_int_eq(open_one("/data/a\nb%\xff", fx.dirs[0], "1M"), 0);
	ck_assert_int_eq(open_one("/data/a\nb%\xff", fx.dirs[0], "1M"), 0);
	ck_assert_int_eq(open_one("/data/a\nb%", fx.dirs[0], "1M"), -EEXIST);
	CHECK_MESSAGE(fx.dirs[0], "'/data/a%0Ab%25%FF'", "'refrain clear ");
}
END_TEST

START_TEST(test_store_refuses_a_tier_in_use)
{
	char pid[32];

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(open_one("/data/set", fx.dirs[0], "1M"), -EBUSY);
	(void)snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	CHECK_MESSAGE(fx.dirs[0], "in use", pid, "unmount");
	fixture_close(&fx);
	ck_assert_int_eq(open_one("/data/set", fx.dirs[0], "1M"), 0);
}
END_TEST

START_TEST(test_store_refuses_one_directory_twice)
{
	static const char *const sizes[] = {"1M", "1M"};

	(void)snprintf(fx.dirs[1], sizeof(fx.dirs[1]), "%s/./t0", fx.root);
	ck_assert_int_eq(fixture_open(&fx, 2, sizes), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], fx.dirs[1], "same", "once");
	ck_assert_int_ne(access(fx.dirs[0], F_OK), 0);
}
END_TEST

START_TEST(test_store_leaves_no_tier_behind_when_another_is_refused)
{
	static const char *const sizes[] = {"1M", "nonsense"};

	ck_assert_int_eq(fixture_open(&fx, 2, sizes), -EINVAL);
	ck_assert_int_ne(access(fx.dirs[0], F_OK), 0);
	ck_assert_int_ne(access(fx.dirs[1], F_OK), 0);
}
END_TEST

START_TEST(test_store_refuses_a_damaged_or_newer_identity)
{
	static const char *const texts[] = {"", "refrain tier 1\n",
		"refrain tier 2\ndataset d\n", "refrain tier 1\ndataset d",
		"refrain tier 1\ndataset \n", "refrain tier 1\ndataset d\n\n",
		"refrain tier 1\ndataset %zz\n", "refrain tier 1\ndataset %4",
		"refrain tier 1\ndataset a b\n"};

	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		touch(fx.dirs[0], "refrain-tier", texts[i]);
		ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), -EBADMSG);
		CHECK_MESSAGE(fx.dirs[0], "made by another version",
			"'refrain clear ");
	}
}
END_TEST

/* A directory in the place of a file fails as a disk would. */
START_TEST(test_store_says_what_to_do_about_a_directory_that_fails)
{
	static const char *const names[][2] = {
		{"refrain-lock", "cannot lock"},
		{"refrain-tier", "cannot read"},
		{"refrain-tier.new", "cannot write"},
	};
	char path[200];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(mkdir(fx.dirs[0], 0700), 0);
		(void)snprintf(
			path, sizeof(path), "%s/%s", fx.dirs[0], names[i][0]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		ck_assert_int_lt(open_one("d", fx.dirs[0], "1M"), 0);
		CHECK_MESSAGE(
			fx.dirs[0], names[i][1], "use another cache directory");
		ck_assert_int_eq(rmdir(path), 0);
		/* No other file is left, so the directory can be removed. */
		(void)snprintf(
			path, sizeof(path), "%s/refrain-lock", fx.dirs[0]);
		(void)unlink(path);
		ck_assert_int_eq(rmdir(fx.dirs[0]), 0);
	}
}
END_TEST

START_TEST(test_store_refuses_planted_links)
{
	char path[200];

	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), 0);
	(void)snprintf(path, sizeof(path), "%s/7f", fx.dirs[0]);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("/tmp", path), 0);
	ck_assert_int_lt(open_one("d", fx.dirs[0], "1M"), 0);
	CHECK_MESSAGE(fx.dirs[0], "'refrain clear ");
}
END_TEST

START_TEST(test_store_refuses_an_unknown_group)
{
	struct store_config config = {
		.dataset = "d", .ntiers = 1, .group = "no-such-group-here"};

	config.tiers[0] = (struct tier_config){.dir = fx.dirs[0], .size = "1M"};
	ck_assert_int_eq(
		store_open(&fx.store, &config, &fx.counters, &fx.err), -EINVAL);
	CHECK_MESSAGE("no-such-group-here", "getent group");
}
END_TEST

struct bad {
	unsigned int calls, progress;
	char path[300];
};

static void on_bad(void *arg, const char *path, const char *why)
{
	struct bad *bad = arg;

	ck_assert_ptr_nonnull(why);
	(void)snprintf(bad->path, sizeof(bad->path), "%s", path);
	bad->calls++;
}

static void on_progress(void *arg, uint64_t done, uint64_t bytes)
{
	struct bad *bad = arg;

	ck_assert_uint_eq(done, ++bad->progress);
	ck_assert_uint_eq(bytes, done * ITEM);
}

static int64_t verify(const char *dir, struct bad *bad, uint64_t *checked)
{
	*bad = (struct bad){0};
	return store_verify_dir(
		dir, on_bad, on_progress, bad, checked, &fx.err);
}

START_TEST(test_verify_names_what_differs_beside_a_mount)
{
	static const off_t at[] = {0, 109999, 110000, 110016 + 47};
	struct bad bad;
	uint64_t checked;
	char path[256];

	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	ck_assert_int_eq(verify(fx.dirs[0], &bad, &checked), 0);
	ck_assert_uint_eq(checked, 20);
	ck_assert_uint_eq(bad.progress, 20);
	(void)fixture_path(&fx, 0, fixture_key(7), ITEM, path);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		fixture_flip(path, at[i], 5);
		ck_assert_int_eq(verify(fx.dirs[0], &bad, &checked), 1);
		ck_assert_str_eq(bad.path, path);
		fixture_flip(path, at[i], 5);
	}
	ck_assert_int_eq(truncate(path, 110000), 0);
	ck_assert_int_eq(verify(fx.dirs[0], &bad, &checked), 1);
	ck_assert_uint_eq(bad.calls, 1);
}
END_TEST

START_TEST(test_verify_takes_a_tier_without_its_identity)
{
	char path[200];
	struct bad bad;
	uint64_t n;

	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	fixture_close(&fx);
	(void)snprintf(path, sizeof(path), "%s/refrain-tier", fx.dirs[0]);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(verify(fx.dirs[0], &bad, &n), 0);
	ck_assert_uint_eq(n, 20);
	touch(fx.dirs[0], "letter", "x");
	ck_assert_int_eq(verify(fx.dirs[0], &bad, &n), -EINVAL);
	CHECK_MESSAGE(fx.dirs[0], "not a cache", "letter");
}
END_TEST

START_TEST(test_verify_and_clear_refuse_what_is_no_tier)
{
	struct bad bad;
	uint64_t n;

	ck_assert_int_eq(verify(fx.root, &bad, &n), -EINVAL);
	CHECK_MESSAGE(fx.root, "not a cache");
	ck_assert_int_eq(verify(fx.dirs[0], &bad, &n), -ENOENT);
	CHECK_MESSAGE(fx.dirs[0]);
	ck_assert_int_eq(store_clear_dir(fx.root, &n, &fx.err), -EINVAL);
	CHECK_MESSAGE(fx.root, "not a cache");
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), -ENOENT);
}
END_TEST

START_TEST(test_clear_leaves_an_empty_directory)
{
	uint64_t n;

	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), -EBUSY);
	CHECK_MESSAGE(fx.dirs[0], "in use");
	fixture_close(&fx);
	touch(fx.dirs[0], "manifest", "x");
	touch(fx.dirs[0], "tmp/left", "x");
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), 0);
	ck_assert_uint_eq(n, 20);
	ck_assert_int_eq(rmdir(fx.dirs[0]), 0);
}
END_TEST

START_TEST(test_clear_spares_what_is_not_ours)
{
	char path[200];
	uint64_t n;

	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), 0);
	touch(fx.dirs[0], "00/notes", "x");
	touch(fx.dirs[0], "refrain-tier", "rubbish");
	ck_assert_int_eq(store_clear_dir(fx.dirs[0], &n, &fx.err), 0);
	(void)snprintf(path, sizeof(path), "%s/00/notes", fx.dirs[0]);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(open_one("d", fx.dirs[0], "1M"), -ENOTEMPTY);
}
END_TEST

static Suite *errors_suite(void)
{
	Suite *suite = suite_create("store_errors");
	TCase *tc = case_with(suite, "errors", setup, teardown);

	tcase_add_test(tc, test_store_refuses_a_size_that_is_nonsense);
	tcase_add_test(tc, test_store_refuses_a_size_over_the_file_system);
	tcase_add_test(tc, test_store_takes_a_percentage_of_the_file_system);
	tcase_add_test(tc, test_store_refuses_what_is_no_directory);
	tcase_add_test(tc, test_store_refuses_a_directory_that_it_cannot_write);
	tcase_add_test(tc, test_store_refuses_a_directory_with_somebodys_files);
	tcase_add_test(tc, test_store_takes_what_a_killed_start_left);
	tcase_add_test(tc, test_store_takes_a_tier_that_lost_its_identity);
	tcase_add_test(tc, test_clear_takes_a_tier_that_lost_its_identity);
	tcase_add_test(
		tc, test_store_refuses_an_unmarked_tier_for_one_foreign_name);
	tcase_add_test(
		tc, test_store_refuses_foreign_kinds_in_an_unmarked_tier);
	tcase_add_test(
		tc, test_store_refuses_a_tier_in_use_whose_files_were_deleted);
	tcase_add_test(tc, test_store_refuses_a_tier_of_another_dataset);
	tcase_add_test(tc, test_store_refuses_a_tier_in_use);
	tcase_add_test(tc, test_store_refuses_one_directory_twice);
	tcase_add_test(
		tc, test_store_leaves_no_tier_behind_when_another_is_refused);
	tcase_add_test(tc, test_store_refuses_a_damaged_or_newer_identity);
	tcase_add_test(
		tc, test_store_says_what_to_do_about_a_directory_that_fails);
	tcase_add_test(tc, test_store_refuses_planted_links);
	tcase_add_test(tc, test_store_refuses_an_unknown_group);
	tcase_add_test(tc, test_verify_names_what_differs_beside_a_mount);
	tcase_add_test(tc, test_verify_takes_a_tier_without_its_identity);
	tcase_add_test(tc, test_verify_and_clear_refuse_what_is_no_tier);
	tcase_add_test(tc, test_clear_leaves_an_empty_directory);
	tcase_add_test(tc, test_clear_spares_what_is_not_ours);
	return suite;
}

int main(void)
{
	return run_suite(errors_suite());
}
