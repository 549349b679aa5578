/* SPDX-License-Identifier: MIT */
/*
 * Entries that were damaged outside the store are found, counted and dropped.
 */
#include "store_case.h"

#include <errno.h>

#include "common/format/entry.h"
#include "suite.h"

/* Ways to damage the last of three entries. The store must drop it then. */
enum damage {
	FLIP_CONTENT,
	FLIP_TABLE,
	FLIP_FOOTER,
	CUT,
	CUT_ALL,
	EXTEND,
	SWAP,
	LINK,
	FIFO,
	DAMAGES,
};

static void do_damage(enum damage how, const char *path, const char *other)
{
	char tmp[300];

	(void)snprintf(tmp, sizeof(tmp), "%s/tmp-swap", fx.root);
	switch (how) {
	case FLIP_CONTENT:
		fixture_flip(path, 70000, 3);
		break;
	case FLIP_TABLE:
		fixture_flip(path, (off_t)ITEM + 3, 0);
		break;
	case FLIP_FOOTER:
		fixture_flip(path, (off_t)ITEM + 16 + 44, 0);
		break;
	case CUT:
		ck_assert_int_eq(truncate(path, (off_t)ITEM), 0);
		break;
	case CUT_ALL:
		ck_assert_int_eq(truncate(path, 0), 0);
		break;
	case EXTEND:
		ck_assert_int_eq(truncate(path, (off_t)ITEM + 65), 0);
		break;
	case SWAP:
		ck_assert_int_eq(rename(path, tmp), 0);
		ck_assert_int_eq(rename(other, path), 0);
		ck_assert_int_eq(rename(tmp, other), 0);
		break;
	case LINK:
		ck_assert_int_eq(rename(path, tmp), 0);
		ck_assert_int_eq(symlink(tmp, path), 0);
		break;
	case FIFO:
	default:
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(mkfifo(path, 0600), 0);
		break;
	}
}

static void damage_and_read(enum damage how, bool read_before)
{
	struct hash128 key = fixture_key(2), other = fixture_key(1);
	char path[256], path_other[256];

	fixture_open_one(&fx, "1M");
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	if (read_before)
		ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	do_damage(how, fixture_path(&fx, 0, key, ITEM, path),
		fixture_path(&fx, 0, other, ITEM, path_other));
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), -ENOENT);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), -ENOENT);
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 1);
	ck_assert_uint_eq(status_of(0).entries, 2);
	ck_assert_uint_eq(status_of(0).used_bytes, 2 * 27 * 4096);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, fixture_key(0), ITEM, 0, ITEM), 0);
}

START_TEST(test_store_drops_a_damaged_entry_before_its_first_use)
{
	damage_and_read((enum damage)_i, false);
}
END_TEST

START_TEST(test_store_drops_a_damaged_entry_after_its_first_use)
{
	damage_and_read((enum damage)_i, true);
}
END_TEST

START_TEST(test_store_serves_right_blocks_of_a_damaged_entry)
{
	struct hash128 key = fixture_key(0);
	char path[256];

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	fixture_flip(fixture_path(&fx, 0, key, ITEM, path), 109999, 7);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, 65536), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 65535, 2), -ENOENT);
}
END_TEST

START_TEST(test_store_without_verify_still_checks_length_and_key)
{
	struct store_config config = {.dataset = "/data/set", .ntiers = 1};
	struct hash128 key = fixture_key(0);
	char path[256], other[256];
	const void *data;

	config.tiers[0] = (struct tier_config){.dir = fx.dirs[0], .size = "1M"};
	ck_assert_int_eq(
		store_open(&fx.store, &config, &fx.counters, &fx.err), 0);
	store_wait_ready(fx.store);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 5, 100), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 5, ITEM - 5), 0);
	fixture_flip(fixture_path(&fx, 0, key, ITEM, path), 0, 0);
	ck_assert_int_eq(
		store_read(fx.store, fx.scratch, key, ITEM, 0, 10, &data), 10);
	do_damage(
		SWAP, path, fixture_path(&fx, 0, fixture_key(1), ITEM, other));
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, 10), -ENOENT);
	do_damage(
		EXTEND, fixture_path(&fx, 0, fixture_key(2), ITEM, path), NULL);
	ck_assert_int_eq(fixture_get(&fx, fixture_key(2), ITEM, 0, 9), -ENOENT);
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 2);
}
END_TEST

START_TEST(test_store_notices_a_deleted_entry)
{
	struct hash128 key = fixture_key(9);
	char path[256];

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(unlink(fixture_path(&fx, 0, key, ITEM, path)), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, 10), -ENOENT);
	ck_assert_uint_eq(fixture_count(&fx.counters.entries_lost), 1);
	ck_assert_uint_eq(status_of(0).used_bytes, 0);
	ck_assert(!store_has(fx.store, key, ITEM));
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, 10), 0);
}
END_TEST

START_TEST(test_store_replaces_a_file_that_it_does_not_know)
{
	struct hash128 key = fixture_key(9);
	char path[256];
	FILE *file;

	fixture_open_one(&fx, "1M");
	file = fopen(fixture_path(&fx, 0, key, ITEM, path), "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	ck_assert_uint_eq(status_of(0).entries, 1);
}
END_TEST

START_TEST(test_store_makes_a_deleted_subdirectory_again)
{
	struct hash128 key = fixture_key(9);
	char path[256];

	fixture_open_one(&fx, "1M");
	(void)fixture_path(&fx, 0, key, ITEM, path);
	path[strlen(fx.dirs[0]) + 3] = '\0';
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store_damage");
	TCase *tc = case_with(s, "damage", setup, teardown);

	tcase_add_loop_test(tc,
		test_store_drops_a_damaged_entry_before_its_first_use, 0,
		DAMAGES);
	tcase_add_loop_test(tc,
		test_store_drops_a_damaged_entry_after_its_first_use, 0,
		DAMAGES);
	tcase_add_test(tc, test_store_serves_right_blocks_of_a_damaged_entry);
	tcase_add_test(
		tc, test_store_without_verify_still_checks_length_and_key);
	tcase_add_test(tc, test_store_notices_a_deleted_entry);
	tcase_add_test(tc, test_store_replaces_a_file_that_it_does_not_know);
	tcase_add_test(tc, test_store_makes_a_deleted_subdirectory_again);
	return run_suite(s);
}
