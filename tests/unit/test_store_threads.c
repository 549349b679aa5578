/* SPDX-License-Identifier: MIT */
/* Tests of many threads in one store, which work on the same few entries at a
 * time. All bytes must be right, the budget must hold whenever it is checked,
 * and at the end the counts must agree with the directory. */
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "common/base/cleanup.h"
#include "common/format/entry.h"
#include "mount/store/entry_table_impl.h"
#include "suite.h"

#define KEYS 48
#define THREADS 4

static struct fixture fx;
static _Atomic bool finished;
static const char *const sizes[] = {"600K", "1M"};

static uint64_t size_of(uint64_t i)
{
	return 1 + i * 7919 % 150000;
}

static void setup(void)
{
	fixture_init(&fx);
	atomic_store(&finished, false);
}

static void teardown(void)
{
	fixture_release(&fx);
}

/* Damage an entry from outside: flip a bit of it, or delete it. */
static void do_harm(uint64_t i, uint64_t random)
{
	char path[256];
	int fd;

	(void)fixture_path(&fx, random % 2, fixture_key(i), size_of(i), path);
	if (random & 2) {
		(void)unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!pwrite(fd, "x", 1, (off_t)(random / 4 % size_of(i)));
	(void)close(fd);
}

/* Read an entry; wrong bytes end the test. Returns false if the store does not
 * have it. */
static bool read_one(struct store_scratch *scratch, uint64_t i)
{
	struct hash128 key = fixture_key(i);
	size_t n = (size_t)size_of(i);
	const void *data;
	unsigned char *want;

	if (store_read(fx.store, scratch, key, n, 0, n, &data) < 0)
		return false;
	want = fixture_bytes(key, n);
	if (memcmp(data, want, n) != 0)
		abort();
	free(want);
	return true;
}

static void put_one(uint64_t i)
{
	struct reservation r;
	unsigned char *p;

	if (store_reserve(fx.store, size_of(i), &r))
		return;
	p = fixture_bytes(fixture_key(i), size_of(i));
	(void)store_publish(fx.store, &r, fixture_key(i), p, size_of(i));
	free(p);
}

struct worker {
	pthread_t thread;
	uint64_t seed;
	uint64_t steps;
	bool harm;
};

static void *work(void *arg)
{
	const struct worker *w = arg;
	struct store_scratch *scratch = store_scratch_new();
	uint64_t random = w->seed;

	if (!scratch)
		abort();
	for (uint64_t n = 0; n < w->steps; n++) {
		uint64_t i;

		random = hash64(&random, sizeof(random), n);
		i = random % KEYS;
		switch (random >> 32 & 15) {
		case 0:
			store_invalidate(fx.store, fixture_key(i), size_of(i));
			break;
		case 1:
			if (w->harm)
				do_harm(i, random >> 40);
			break;
		case 2:
			(void)store_has(fx.store, fixture_key(i), size_of(i));
			break;
		default:
			if (!read_one(scratch, i))
				put_one(i);
			break;
		}
	}
	store_scratch_free(scratch);
	return NULL;
}

static void *watch(void *arg)
{
	(void)arg;
	while (!atomic_load(&finished)) {
		(void)sched_yield(); /* there may be only one core */
		for (size_t t = 0; t < 2; t++) {
			struct tier_status st;

			store_tier_status(fx.store, t, &st);
			if (st.used_bytes + st.reserved_bytes >
				st.capacity_bytes)
				abort();
		}
	}
	return NULL;
}

static void work_together(uint64_t seed, uint64_t steps, bool harm)
{
	struct worker workers[THREADS];
	pthread_t watcher;

	atomic_store(&finished, false);
	ck_assert_int_eq(pthread_create(&watcher, NULL, watch, NULL), 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.seed = seed + i, .steps = steps, .harm = harm};
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work,
					 &workers[i]),
			0);
	}
	for (size_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
	atomic_store(&finished, true);
	ck_assert_int_eq(pthread_join(watcher, NULL), 0);
}

/* Count the entries of a tier and their content bytes in its directories. */
static void count_disk(size_t t, uint64_t *entries, uint64_t *bytes)
{
	*entries = *bytes = 0;
	for (unsigned int sub = 0; sub < 256; sub++) {
		CLEANUP_DIR DIR *dir = NULL;
		const struct dirent *e;
		char path[100];

		(void)snprintf(path, sizeof(path), "%.79s/%02x", fx.dirs[t],
			sub & 0xff);
		dir = opendir(path);
		ck_assert_ptr_nonnull(dir);
		while ((e = readdir(dir))) {
			struct hash128 key;
			uint64_t size;

			if (!entry_parse_name(e->d_name, sub, &key, &size))
				continue;
			++*entries;
			*bytes += size;
		}
	}
}

static void check_accounts(void)
{
	store_wait_ready(fx.store);
	/* The store notices that an entry was deleted when a read asks for it.
	 */
	for (uint64_t i = 0; i < KEYS; i++)
		(void)read_one(fx.scratch, i);
	for (size_t t = 0; t < 2; t++) {
		struct tier_status st;
		uint64_t entries, bytes;

		store_tier_status(fx.store, t, &st);
		count_disk(t, &entries, &bytes);
		ck_assert_uint_eq(st.entries, entries);
		ck_assert_uint_eq(st.resident_bytes, bytes);
		ck_assert_uint_eq(st.reserved_bytes, 0);
		ck_assert(entries || st.used_bytes == 0);
	}
	ck_assert_uint_eq(fixture_count(&fx.counters.tier_errors), 0);
}

START_TEST(test_store_serves_threads_that_publish_and_read_and_delete)
{
	ck_assert_int_eq(fixture_open(&fx, 2, sizes), 0);
	store_wait_ready(fx.store);
	work_together(1, 1500, false);
	check_accounts();
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.entries_lost), 0);
}
END_TEST

START_TEST(test_store_serves_threads_while_entries_are_damaged)
{
	ck_assert_int_eq(fixture_open(&fx, 2, sizes), 0);
	store_wait_ready(fx.store);
	work_together(2, 1500, true);
	check_accounts();
	ck_assert_uint_gt(fixture_count(&fx.counters.checksum_errors), 0);
}
END_TEST

START_TEST(test_store_serves_threads_while_directories_are_read)
{
	for (uint64_t round = 0; round < 30; round++) {
		ck_assert_int_eq(fixture_open(&fx, 2, sizes), 0);
		work_together(1000 + round * THREADS, 40, false);
		check_accounts();
		fixture_close(&fx);
	}
	ck_assert_uint_eq(fixture_count(&fx.counters.checksum_errors), 0);
	ck_assert_uint_eq(fixture_count(&fx.counters.entries_lost), 0);
}
END_TEST

/* -- the index by itself, for what timing seldom brings about -- */

static void count_charge(void *arg, const struct entry_ref *ref)
{
	(void)ref;
	++*(unsigned int *)arg;
}

START_TEST(test_index_does_not_adopt_what_was_dropped_during_the_scan)
{
	struct entries *x = entries_new();
	struct entry_ref ref = {fixture_key(1), 10, 0}, now;
	unsigned int charged = 0;

	ck_assert_int_eq(
		entries_adopt(x, &ref, count_charge, &charged, &now), 1);
	ck_assert_int_eq(
		entries_adopt(x, &ref, count_charge, &charged, &now), 0);
	ck_assert(entries_drop(x, ref.key, &now));
	ck_assert(!entries_drop(x, ref.key, &now));
	entries_forget(x, ref.key);
	/* The scan has read the name before the entry was deleted. */
	ck_assert_int_eq(
		entries_adopt(x, &ref, count_charge, &charged, &now), 0);
	ck_assert_uint_eq(charged, 1);
	entries_scanned(x);
	ck_assert_int_eq(entries_find(x, ref.key, &now), ENTRY_ABSENT);
	ck_assert_int_eq(entries_claim(x, &ref), 1);
	entries_forget(x, ref.key);
	ck_assert_int_eq(entries_claim(x, &ref), 1);
	entries_free(x);
}
END_TEST

/*
 * A thread that found an entry on disk before the scan was complete must not
 * charge an entry that has been deleted since.
 */
START_TEST(test_index_adopts_nothing_after_the_scan)
{
	struct entries *x = entries_new();
	struct entry_ref ref = {fixture_key(1), 10, 0}, now;
	unsigned int charged = 0;

	ck_assert_int_eq(
		entries_adopt(x, &ref, count_charge, &charged, &now), 1);
	entries_scanned(x);
	ck_assert(entries_drop(x, ref.key, &now));
	entries_forget(x, ref.key);
	ck_assert_int_eq(
		entries_adopt(x, &ref, count_charge, &charged, &now), 0);
	ck_assert_uint_eq(charged, 1);
	ck_assert_int_eq(entries_find(x, ref.key, &now), ENTRY_ABSENT);
	entries_free(x);
}
END_TEST

START_TEST(test_index_drops_what_was_invalidated_while_it_was_linked)
{
	struct entries *x = entries_new();
	struct entry_ref ref = {fixture_key(1), 10, 0}, now;

	entries_scanned(x);
	ck_assert_int_eq(entries_claim(x, &ref), 1);
	ck_assert_int_eq(entries_claim(x, &ref), 0);
	ck_assert(!entries_drop(x, ref.key, &now));
	ck_assert(!entries_publish(x, ref.key));
	entries_forget(x, ref.key);
	ck_assert_int_eq(entries_find(x, ref.key, &now), ENTRY_ABSENT);
	entries_free(x);
}
END_TEST

START_TEST(test_index_finds_all_of_many_while_half_of_them_go)
{
	struct entries *x = entries_new();
	struct entry_ref now;
	unsigned int charged = 0;
	const uint64_t n = 20000;

	for (uint64_t i = 0; i < n; i++) {
		struct entry_ref ref = {fixture_key(i), i + 1, i % 16};

		ck_assert_int_eq(
			entries_adopt(x, &ref, count_charge, &charged, &now),
			1);
	}
	entries_scanned(x);
	for (uint64_t i = 0; i < n; i += 2) {
		ck_assert(entries_drop(x, fixture_key(i), &now));
		entries_forget(x, fixture_key(i));
	}
	for (uint64_t i = 0; i < n; i++) {
		enum entry_state want = i % 2 ? ENTRY_RESIDENT : ENTRY_ABSENT;

		ck_assert_int_eq(entries_find(x, fixture_key(i), &now), want);
		if (i % 2) {
			ck_assert_uint_eq(now.item_bytes, i + 1);
			ck_assert_uint_eq(now.tier, i % 16);
		}
	}
	entries_free(x);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store_threads");
	TCase *tc = case_with(suite, "threads", setup, teardown);

	tcase_add_test(
		tc, test_store_serves_threads_that_publish_and_read_and_delete);
	tcase_add_test(tc, test_store_serves_threads_while_entries_are_damaged);
	tcase_add_test(
		tc, test_store_serves_threads_while_directories_are_read);
	tcase_add_test(
		tc, test_index_does_not_adopt_what_was_dropped_during_the_scan);
	tcase_add_test(tc, test_index_adopts_nothing_after_the_scan);
	tcase_add_test(
		tc, test_index_drops_what_was_invalidated_while_it_was_linked);
	tcase_add_test(tc, test_index_finds_all_of_many_while_half_of_them_go);
	return run_suite(suite);
}
