/* SPDX-License-Identifier: MIT */
/* The guarantees of the store, one in each test. */
#include "store_case.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

#include "common/format/entry.h"
#include "mount/store/entry_table_impl.h"
#include "suite.h"

START_TEST(test_store_reads_back_every_range)
{
	static const uint64_t sizes[] = {1, 7, 65535, 65536, 65537, 131072,
		200000, 1 << 20, (1 << 20) + 65537, 3000001};

	fixture_open_one(&fx, "100M");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t n = sizes[i];
		struct hash128 key = fixture_key(i);

		ck_assert_int_eq(fixture_get(&fx, key, n, 0, 1), -ENOENT);
		ck_assert_int_eq(fixture_put(&fx, key, n), 0);
		ck_assert(store_has(fx.store, key, n));
		for (uint64_t off = 0; off < n; off += n / 13 + 1) {
			size_t len = (size_t)(n - off);

			if (len > STORE_READ_MAX_BYTES)
				len = STORE_READ_MAX_BYTES;
			ck_assert_int_eq(fixture_get(&fx, key, n, off, 1), 0);
			ck_assert_int_eq(fixture_get(&fx, key, n, off, len), 0);
			ck_assert_int_eq(
				fixture_get(&fx, key, n, off, (len + 1) / 2),
				0);
		}
	}
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 0);
}
END_TEST

START_TEST(test_store_refuses_a_read_outside_of_the_item)
{
	struct hash128 key = fixture_key(1);

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, 100), 0);
	ck_assert_int_eq(fixture_get(&fx, key, 100, 50, 51), -EINVAL);
	ck_assert_int_eq(fixture_get(&fx, key, 100, 101, 1), -EINVAL);
	ck_assert_int_eq(fixture_get(&fx, key, 100, UINT64_MAX, 2), -EINVAL);
	ck_assert_int_eq(fixture_get(&fx, key, 100, 0, 0), -EINVAL);
}
END_TEST

START_TEST(test_store_refuses_admission_when_full)
{
	struct tier_status st;
	uint64_t i = 0;

	fixture_open_one(&fx, "1M");
	while (fixture_put(&fx, fixture_key(i), ITEM) == 0)
		i++;
	/* an entry of 110 K takes 27 blocks */
	ck_assert_uint_eq(i, (1 << 20) / (27 * 4096));
	ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), -ENOSPC);
	/* A smaller item may still be admitted. */
	ck_assert_int_eq(fixture_put(&fx, fixture_key(i), 4000), 0);
	st = status_of(0);
	ck_assert_uint_le(st.used_bytes + st.reserved_bytes, st.capacity_bytes);
	ck_assert_uint_eq(st.resident_bytes, i * ITEM + 4000);
	ck_assert_uint_eq(fixture_count(&fx.counters.evictions), 0);
}
END_TEST

/* The namespace ends with the process of the test, and the mount with it. */
START_TEST(test_store_charges_huge_pages_of_a_tmpfs)
{
	struct tier_status s;
	uint64_t n = 0, huge;
	struct statvfs fs;

	if (unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", "none", MS_REC | MS_SLAVE, NULL) < 0 ||
		mount("none", fx.root, "tmpfs", 0, "size=64m,huge=always") <
			0) {
		(void)fprintf(stderr, "skipped: no tmpfs with huge pages\n");
		return;
	}
	fixture_open_one(&fx, "50%");
	store_tier_status(fx.store, 0, &s);
	huge = s.block_bytes;
	ck_assert_uint_gt(huge, 65536);
	while (fixture_put(&fx, fixture_key(n), 100000) == 0)
		n++;
	store_tier_status(fx.store, 0, &s);
	ck_assert_uint_eq(n, s.capacity_bytes / huge);
	ck_assert_uint_eq(s.used_bytes, n * huge);
	ck_assert_int_eq(statvfs(fx.root, &fs), 0);
	/* The directories and files of the tier itself are not charged. */
	ck_assert_uint_le((fs.f_blocks - fs.f_bfree) * fs.f_frsize,
		s.capacity_bytes + 4 * huge);
	fixture_close(&fx);
	ck_assert_int_eq(umount2(fx.root, MNT_DETACH), 0);
}
END_TEST

START_TEST(test_store_counts_reservations_against_the_budget)
{
	struct reservation a, b;

	fixture_open_one(&fx, "200K");
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &a), 0);
	ck_assert_uint_eq(status_of(0).reserved_bytes, 27 * 4096);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &b), -ENOSPC);
	ck_assert_uint_eq(b.charged_bytes, 0);
	store_unreserve(fx.store, &a);
	store_unreserve(fx.store, &a);
	ck_assert_uint_eq(status_of(0).reserved_bytes, 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &b), 0);
	store_unreserve(fx.store, &b);
}
END_TEST

START_TEST(test_store_admits_to_the_first_tier_with_room)
{
	static const char *const sizes[] = {"200K", "300K"};
	struct reservation r;

	ck_assert_int_eq(fixture_open(&fx, 2, sizes), 0);
	store_wait_ready(fx.store);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	ck_assert_uint_eq(status_of(0).entries, 1);
	ck_assert_uint_eq(status_of(1).entries, 2);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), -ENOSPC);
	ck_assert_int_eq(store_reserve(fx.store, 50000, &r), 0);
	ck_assert_uint_eq(r.tier, 0);
	store_unreserve(fx.store, &r);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(
			fixture_get(&fx, fixture_key(i), ITEM, 0, ITEM), 0);
}
END_TEST

START_TEST(test_store_takes_an_entry_published_twice_once)
{
	struct reservation a, b;
	struct hash128 key = fixture_key(5);
	unsigned char *p = fixture_bytes(key, ITEM);

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &a), 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &b), 0);
	ck_assert_int_eq(store_publish(fx.store, &a, key, p, ITEM), 0);
	ck_assert_int_eq(store_publish(fx.store, &b, key, p, ITEM), -EEXIST);
	free(p);
	ck_assert_uint_eq(status_of(0).used_bytes, 27 * 4096);
	ck_assert_uint_eq(status_of(0).reserved_bytes, 0);
	ck_assert_uint_eq(status_of(0).entries, 1);
}
END_TEST

START_TEST(test_store_keeps_entries_over_a_restart)
{
	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 50; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM + i), 0);
	for (int round = 0; round < 3; round++) {
		uint64_t used = status_of(0).used_bytes;
		const char *size = "10M";

		fixture_close(&fx);
		ck_assert_int_eq(fixture_open(&fx, 1, &size), 0);
		/* Reads succeed at once, while the tier still reads its
		 * directories. */
		for (uint64_t i = 0; i < 50; i++)
			ck_assert_int_eq(fixture_get(&fx, fixture_key(i),
						 ITEM + i, i, ITEM),
				0);
		store_wait_ready(fx.store);
		ck_assert_uint_eq(status_of(0).used_bytes, used);
		ck_assert_uint_eq(status_of(0).entries, 50);
	}
}
END_TEST

START_TEST(test_store_takes_no_size_below_what_it_has_or_is_about_to_get)
{
	struct reservation r;

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, fixture_key(1), ITEM), 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	ck_assert_int_eq(store_resize(fx.store, 0, 2 * 27 * 4096 - 1), -ENOSPC);
	ck_assert_uint_eq(status_of(0).capacity_bytes, 1 << 20);
	ck_assert_int_eq(store_resize(fx.store, 0, 2 * 27 * 4096), 0);
	ck_assert_int_eq(fixture_put(&fx, fixture_key(2), 1), -ENOSPC);
	store_unreserve(fx.store, &r);
	ck_assert_int_eq(fixture_put(&fx, fixture_key(2), ITEM), 0);
	ck_assert_int_eq(store_resize(fx.store, 0, 1 << 20), 0);
	ck_assert_int_eq(fixture_put(&fx, fixture_key(3), ITEM), 0);
}
END_TEST

START_TEST(test_store_closes_admission_when_reopened_smaller)
{
	fixture_open_one(&fx, "1M");
	for (uint64_t i = 0; i < 9; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	fixture_close(&fx);
	fixture_open_one(&fx, "500K");
	ck_assert_uint_eq(status_of(0).entries, 9);
	ck_assert_int_eq(fixture_put(&fx, fixture_key(10), 1), -ENOSPC);
	ck_assert_int_eq(fixture_get(&fx, fixture_key(8), ITEM, 0, 1), 0);
}
END_TEST

static void on_bad(void *arg, const char *path, const char *why)
{
	(void)arg;
	ck_abort_msg("%s: %s", path, why);
}

START_TEST(test_store_counts_a_failing_write_and_gives_the_room_back)
{
	struct hash128 key = fixture_key(9);
	char path[256];

	fixture_open_one(&fx, "1M");
	/* A directory in the entry's place makes root's writes fail, too. */
	ck_assert_int_eq(mkdir(fixture_path(&fx, 0, key, ITEM, path), 0700), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), -EISDIR);
	ck_assert_uint_eq(fixture_count(&fx.counters.tier_errors), 1);
	ck_assert_uint_eq(status_of(0).reserved_bytes, 0);
	ck_assert_uint_eq(status_of(0).used_bytes, 0);
	ck_assert(!store_has(fx.store, key, ITEM));
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
}
END_TEST

static const char *const two_sizes[] = {"1M", "1M"};

/* Open two tiers. The first has a directory in the place of the entry. */
static void open_with_a_bad_name(struct hash128 key)
{
	char path[256];

	ck_assert_int_eq(fixture_open(&fx, 2, two_sizes), 0);
	store_wait_ready(fx.store);
	ck_assert_int_eq(mkdir(fixture_path(&fx, 0, key, ITEM, path), 0700), 0);
}

START_TEST(test_store_puts_what_a_tier_does_not_take_into_the_next)
{
	struct hash128 key = fixture_key(9);

	open_with_a_bad_name(key);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.tier_errors), 1);
	ck_assert_uint_eq(
		status_of(0).used_bytes + status_of(0).reserved_bytes, 0);
	ck_assert_uint_eq(status_of(1).used_bytes, 27 * 4096);
	ck_assert_uint_eq(status_of(1).reserved_bytes, 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	store_discard(fx.store, key, ITEM);
	ck_assert_uint_eq(status_of(1).used_bytes, 0);
}
END_TEST

START_TEST(test_store_comes_back_to_a_tier_that_failed)
{
	struct hash128 key = fixture_key(9);
	unsigned char *p = fixture_bytes(key, ITEM);
	struct reservation r, first;

	open_with_a_bad_name(key);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	ck_assert_uint_eq(r.tier, 1);
	store_unreserve(fx.store, &r);
	/* A second later one write tries the tier again. If it succeeds, all
	 * later writes use the tier. */
	do {
		store_unreserve(fx.store, &r);
		ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	} while (r.tier != 0);
	first = r;
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	ck_assert_uint_eq(r.tier, 1);
	store_unreserve(fx.store, &r);
	ck_assert_int_eq(
		store_publish(fx.store, &first, fixture_key(10), p, ITEM), 0);
	free(p);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	ck_assert_uint_eq(r.tier, 0);
	store_unreserve(fx.store, &r);
}
END_TEST

START_TEST(test_store_uses_a_tier_that_failed_when_no_other_has_room)
{
	struct hash128 key = fixture_key(9);
	struct reservation r;

	open_with_a_bad_name(key);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	for (int i = 0; i < 2 * (int)((1 << 20) / (27 * 4096)) - 1; i++)
		ck_assert_int_eq(
			fixture_put(&fx, fixture_key(100 + i), ITEM), 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), -ENOSPC);
}
END_TEST

START_TEST(test_store_leaves_nothing_of_a_write_that_fails_half_way)
{
	const struct rlimit limit = {50000, RLIM_INFINITY};
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	struct hash128 key = fixture_key(9);
	uint64_t checked;

	if (_i) /* let the entry be written to a file with a name */
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "tmpfile", 1), 0);
	fixture_open_one(&fx, "1M");
	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), -EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.tier_errors), 1);
	ck_assert_uint_eq(
		status_of(0).reserved_bytes + status_of(0).used_bytes, 0);
	ck_assert_int_eq(store_verify_dir(fx.dirs[0], on_bad, NULL, NULL,
				 &checked, &fx.err),
		0);
	ck_assert_uint_eq(checked, 0);
	/* The tier works again. */
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
}
END_TEST

START_TEST(test_store_invalidates)
{
	struct hash128 key = fixture_key(9);
	const char *size = "1M";
	char path[256];

	fixture_open_one(&fx, size);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	store_invalidate(fx.store, key, ITEM);
	store_invalidate(fx.store, key, ITEM);
	ck_assert_uint_eq(fixture_count(&fx.counters.invalidated), 1);
	ck_assert_uint_eq(status_of(0).used_bytes, 0);
	ck_assert_int_ne(access(fixture_path(&fx, 0, key, ITEM, path), 0), 0);
	/* The same happens before the tier has read its directories. */
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	fixture_close(&fx);
	ck_assert_int_eq(fixture_open(&fx, 1, &size), 0);
	store_invalidate(fx.store, key, ITEM);
	ck_assert(!store_has(fx.store, key, ITEM));
	store_wait_ready(fx.store);
	ck_assert(!store_has(fx.store, key, ITEM));
	ck_assert_uint_eq(status_of(0).entries, 0);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
}
END_TEST

START_TEST(test_store_keeps_entries_and_parts_of_a_size)
{
	struct reservation r;
	uint8_t map[512] = {1};
	char data[ITEM + 512] = {0};

	fixture_open_one(&fx, "10M");
	ck_assert_int_eq(fixture_put(&fx, fixture_key(1), ITEM), 0);
	ck_assert_int_eq(fixture_put(&fx, fixture_key(2), ITEM + 1), 0);
	ck_assert_int_eq(store_reserve(fx.store, ITEM, &r), 0);
	ck_assert_int_eq(
		store_part_write(fx.store, &r, fixture_key(3), data, ITEM, map),
		0);
	store_unmark_all(fx.store);
	store_mark_size(fx.store, ITEM);
	ck_assert_uint_eq(store_sweep(fx.store), 1);
	ck_assert(store_has(fx.store, fixture_key(1), ITEM));
	ck_assert(!store_has(fx.store, fixture_key(2), ITEM + 1));
	ck_assert(store_part_has(fx.store, fixture_key(3), ITEM));
}
END_TEST

START_TEST(test_store_sweeps_what_was_not_kept)
{
	fixture_open_one(&fx, "10M");
	for (uint64_t i = 0; i < 40; i++)
		ck_assert_int_eq(fixture_put(&fx, fixture_key(i), ITEM), 0);
	store_unmark_all(fx.store);
	for (uint64_t i = 0; i < 40; i += 4)
		store_mark(fx.store, fixture_key(i));
	ck_assert_int_eq(fixture_put(&fx, fixture_key(99), ITEM), 0);
	ck_assert_uint_eq(store_sweep(fx.store), 30);
	ck_assert_uint_eq(store_sweep(fx.store), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.invalidated), 30);
	ck_assert_uint_eq(status_of(0).entries, 11);
	for (uint64_t i = 0; i < 40; i++)
		ck_assert_int_eq(
			store_has(fx.store, fixture_key(i), ITEM), i % 4 == 0);
	ck_assert(store_has(fx.store, fixture_key(99), ITEM));
}
END_TEST

START_TEST(test_store_keeps_one_of_two_copies)
{
	static const char *const sizes[] = {"1M", "1M"};
	struct hash128 key = fixture_key(3);
	char dir[80], path[256];

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	fixture_close(&fx);
	memcpy(dir, fx.dirs[0], sizeof(dir));
	memcpy(fx.dirs[0], fx.dirs[1], sizeof(dir));
	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	fixture_close(&fx);
	memcpy(fx.dirs[1], dir, sizeof(dir));
	ck_assert_int_eq(fixture_open(&fx, 2, sizes), 0);
	store_wait_ready(fx.store);
	ck_assert_uint_eq(status_of(0).entries, 1);
	ck_assert_uint_eq(status_of(1).entries, 0);
	ck_assert_int_ne(access(fixture_path(&fx, 1, key, ITEM, path), 0), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
}
END_TEST

START_TEST(test_store_empties_tmp_at_the_start)
{
	char path[256];
	FILE *file;

	fixture_open_one(&fx, "1M");
	fixture_close(&fx);
	(void)snprintf(path, sizeof(path), "%s/tmp/left", fx.dirs[0]);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fclose(file), 0);
	fixture_open_one(&fx, "1M");
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(test_store_files_are_the_owners_only)
{
	struct hash128 key = fixture_key(9);
	char path[256];
	struct stat st;

	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(stat(fx.dirs[0], &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(stat(fixture_path(&fx, 0, key, ITEM, path), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq(
		(uint64_t)st.st_size, ITEM + entry_trailer_bytes(ITEM));
}
END_TEST

START_TEST(test_store_leaves_the_mode_of_a_directory_that_was_there)
{
	struct hash128 key = fixture_key(9);
	char path[256];
	struct stat st;

	ck_assert_int_eq(mkdir(fx.dirs[0], 0755), 0);
	ck_assert_int_eq(chmod(fx.dirs[0], 0755), 0);
	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(stat(fx.dirs[0], &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	(void)fixture_path(&fx, 0, key, ITEM, path);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
}
END_TEST

/* The checksums of the entry are right, because anybody can compute them. */
START_TEST(test_store_serves_no_entry_of_another_user)
{
	struct hash128 key = fixture_key(9);
	char path[256];

	if (geteuid() != 0)
		return; /* this user cannot give a file to another user */
	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	(void)fixture_path(&fx, 0, key, ITEM, path);
	ck_assert_int_eq(chown(path, 65534, (gid_t)-1), 0);
	ck_assert_int_ne(fixture_get(&fx, key, ITEM, 0, ITEM), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 1);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(test_store_files_are_readable_by_the_group)
{
	const struct group *group = getgrgid(getegid());
	struct store_config config = {.dataset = "/data/set", .ntiers = 1};
	struct hash128 key = fixture_key(9);
	char path[256];
	struct stat st;

	if (!group)
		return; /* a group without a name cannot be an argument */
	config.group = group->gr_name;
	config.tiers[0] = (struct tier_config){.dir = fx.dirs[0], .size = "1M"};
	(void)umask(077);
	ck_assert_int_eq(
		store_open(&fx.store, &config, &fx.counters, &fx.err), 0);
	store_wait_ready(fx.store);
	ck_assert_int_eq(fixture_put(&fx, key, ITEM), 0);
	ck_assert_int_eq(stat(fixture_path(&fx, 0, key, ITEM, path), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_uint_eq(st.st_gid, getegid());
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 02750);
	/* A mount without the group no longer serves these entries. */
	fixture_close(&fx);
	fixture_open_one(&fx, "1M");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
}
END_TEST

#define INDEX_ENTRIES 400000

static void charge_nothing(void *arg, const struct entry_ref *ref)
{
	(void)arg;
	(void)ref;
}

/* Returns the time to index all entries, in seconds, as if sub-directories were
 * read in order. */
static double time_to_adopt(bool in_order)
{
	struct entries *x = entries_new();
	clock_t begin = clock();
	int64_t adopted = 0;

	ck_assert_ptr_nonnull(x);
	for (uint64_t i = 0; i < INDEX_ENTRIES; i++) {
		uint64_t sub = in_order ? i * 256 / INDEX_ENTRIES : i % 256;
		struct entry_ref ref = {.key = hash128(&i, sizeof(i)),
					 .item_bytes = 1},
				 now;

		ref.key.hi = ref.key.hi >> 8 | sub << 56;
		adopted += entries_adopt(x, &ref, charge_nothing, NULL, &now);
	}
	begin = clock() - begin;
	ck_assert_int_eq(adopted, INDEX_ENTRIES);
	entries_free(x);
	return (double)begin / CLOCKS_PER_SEC;
}

/* When a store starts, it reads keys in the order of their first byte. */
START_TEST(test_index_takes_entries_in_any_order_equally_fast)
{
	double mixed = time_to_adopt(false), in_order = time_to_adopt(true);

	ck_assert_double_lt(in_order, 3 * mixed + 0.1);
}
END_TEST

static Suite *store_suite(void)
{
	Suite *suite = suite_create("store");
	TCase *tc = case_with(suite, "store", setup, teardown);

	tcase_add_test(tc, test_store_reads_back_every_range);
	tcase_add_test(tc, test_store_refuses_a_read_outside_of_the_item);
	tcase_add_test(tc, test_store_refuses_admission_when_full);
	tcase_add_test(tc, test_store_charges_huge_pages_of_a_tmpfs);
	tcase_add_test(tc, test_store_counts_reservations_against_the_budget);
	tcase_add_test(tc, test_store_admits_to_the_first_tier_with_room);
	tcase_add_test(tc, test_store_takes_an_entry_published_twice_once);
	tcase_add_test(tc, test_store_keeps_entries_over_a_restart);
	tcase_add_test(tc,
		test_store_takes_no_size_below_what_it_has_or_is_about_to_get);
	tcase_add_test(tc, test_store_closes_admission_when_reopened_smaller);
	tcase_add_test(
		tc, test_store_counts_a_failing_write_and_gives_the_room_back);
	tcase_add_test(
		tc, test_store_puts_what_a_tier_does_not_take_into_the_next);
	tcase_add_test(tc, test_store_comes_back_to_a_tier_that_failed);
	tcase_add_test(
		tc, test_store_uses_a_tier_that_failed_when_no_other_has_room);
	tcase_add_loop_test(tc,
		test_store_leaves_nothing_of_a_write_that_fails_half_way, 0, 2);
	tcase_add_test(tc, test_store_invalidates);
	tcase_add_test(tc, test_store_keeps_entries_and_parts_of_a_size);
	tcase_add_test(tc, test_store_sweeps_what_was_not_kept);
	tcase_add_test(tc, test_store_keeps_one_of_two_copies);
	tcase_add_test(tc, test_store_empties_tmp_at_the_start);
	tcase_add_test(tc, test_store_files_are_the_owners_only);
	tcase_add_test(
		tc, test_store_leaves_the_mode_of_a_directory_that_was_there);
	tcase_add_test(tc, test_store_serves_no_entry_of_another_user);
	tcase_add_test(tc, test_store_files_are_readable_by_the_group);
	tcase_add_test(tc, test_index_takes_entries_in_any_order_equally_fast);
	return suite;
}

int main(void)
{
	return run_suite(store_suite());
}
