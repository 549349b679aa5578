/* SPDX-License-Identifier: MIT */
/* Tests of the cache over a real store and an origin that answers when the test
 * says so: which requests reach the origin, when readers get answers, and what
 * is stored. */
#include "cache_fixture.h"
#include "suite.h"

START_TEST(test_many_first_readers_cause_one_origin_read_of_each_byte)
{
	static struct probe p[64];
	struct cache_item item;
	struct rig g;

	rig_start(&g, "16M");
	item = file_item(&g, 7, 700000, 0);
	for (int i = 0; i < 64; i++)
		probe_read(&g, &p[i], item, 0, 700000);
	answer_all(&g.hand);
	for (int i = 0; i < 64; i++) {
		probe_wait(&p[i]);
		ck_assert_int_eq(p[i].status, 700000);
		ck_assert(p[i].right);
	}
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 700000);
	ck_assert_uint_eq(g.fix.counters.misses, 64);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_reader_gets_its_bytes_before_the_item_is_complete)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, LIMIT, 0), 4096, 1000);
	ck_assert(!p.done);
	answer(hand_take(&g.hand, 0), 0);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_lt(g.fix.counters.origin_bytes, LIMIT);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_published_item_is_a_hit_without_the_origin)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	answer_all(&g.hand);
	probe_wait(&p);
	cache_settle(g.cache, 10 * NS_PER_S);
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.hits, 1);
	ck_assert_uint_eq(g.fix.counters.admitted, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

/* -- Reads at once ------------------------------------------------------- */

static bool now_fails;
static unsigned now_calls;

static int hand_read_now(
	struct origin *o, const struct origin_read *r, void *bytes)
{
	uint8_t *b = bytes;

	(void)o;
	now_calls++;
	for (size_t i = 0; i < r->len; i++)
		b[i] = now_fails ? 1 : byte_at(r->off + i);
	return now_fails ? -EAGAIN : 0;
}

static void start_with_now(struct rig *g, bool fails)
{
	static struct origin_ops ops;

	rig_start(g, "16M");
	ops = hand_ops;
	ops.read_now = hand_read_now;
	g->hand.o.ops = &ops;
	now_fails = fails;
	now_calls = 0;
}

START_TEST(test_a_reader_reads_and_stores_at_once_what_is_in_memory)
{
	struct tier_status s;
	struct probe p;
	struct rig g;

	start_with_now(&g, false);
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 1000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.hand.started, 0);
	ck_assert_uint_eq(g.fix.counters.origin_reads, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	store_tier_status(g.fix.store, 0, &s);
	if (s.in_memory)
		ck_assert_uint_eq(g.fix.counters.admitted, 1);
	cache_settle(g.cache, 10 * NS_PER_S);
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.hits, 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_read_that_cannot_be_done_at_once_becomes_a_request)
{
	struct probe p;
	struct rig g;

	start_with_now(&g, true);
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	ck_assert(!p.done);
	ck_assert_uint_eq(now_calls, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 0);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_reader_reads_no_more_at_once_than_one_request)
{
	struct probe p;
	struct rig g;

	start_with_now(&g, false);
	probe_read(&g, &p, file_item(&g, 1, LIMIT, 0), 0, 1000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(now_calls, 1);
	ck_assert_uint_eq(g.hand.started, LIMIT / CHUNK - 1);
	answer_all(&g.hand);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_is_fetched_ahead_is_never_read_at_once)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	start_with_now(&g, false);
	item = file_item(&g, 1, 100000, 0);
	cache_prefetch(g.cache, &item, 0, 100000);
	probe_ask(&g, &p, file_item(&g, 2, 100000, 0), 0, 1000, true);
	ck_assert(!p.done);
	ck_assert_uint_eq(now_calls, 0);
	answer_all(&g.hand);
	probe_wait(&p);
	rig_stop(&g);
}
END_TEST

/* The directory is in the place of an entry, so the entry can be neither read
 * nor deleted. */
START_TEST(test_an_entry_that_cannot_be_read_is_not_admitted_again)
{
	struct cache_item item;
	struct probe p;
	char path[256];
	struct rig g;

	rig_start(&g, "16M");
	item = file_item(&g, 1, 100000, 0);
	probe_read(&g, &p, item, 0, 100000);
	answer_all(&g.hand);
	probe_wait(&p);
	cache_settle(g.cache, 10 * NS_PER_S);
	fixture_path(&g.fix, 0, cache_key(g.cache, &item), 100000, path);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	probe_read(&g, &p, item, 0, 50000);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(g.fix.counters.admitted, 1);
	/* Reading again does not fetch the item again, either. */
	probe_read(&g, &p, item, 50000, 50000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 200000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_chunk_fetches_only_the_pages_that_are_read)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 64 * LIMIT, 5 * CHUNK + 10000),
		10000, 20000);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	/* Only pages 2 to 7 of the chunk were fetched. */
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 6 * 4096);
	/* The last request completes the item, and no byte is fetched twice. */
	probe_read(&g, &p, p.item, 0, CHUNK);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, CHUNK);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert(cache_resident(g.cache, &p.item));
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_failed_fetch_is_told_to_its_readers_and_tried_anew)
{
	struct probe p, other;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 1000, 0), 0, 1000);
	probe_read(&g, &other, file_item(&g, 2, 1000, 0), 0, 1000);
	answer(hand_take(&g.hand, 0), -EIO);
	ck_assert_int_eq(p.status, -EIO);
	ck_assert(!other.done);
	answer_all(&g.hand);
	ck_assert(other.right);
	probe_read(&g, &p, p.item, 0, 1000);
	answer_all(&g.hand);
	ck_assert(p.right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_stale_version_is_reported_and_never_cached)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 42, 1000, 0), 0, 1000);
	answer(hand_take(&g.hand, 0), -ESTALE);
	ck_assert_int_eq(p.status, -ESTALE);
	ck_assert_uint_eq(g.stale, 42);
	ck_assert(!cache_resident(g.cache, &p.item));
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_does_not_fit_passes_through_and_leaves_when_served)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	item = file_item(&g, 1, 500000, 0);
	probe_read(&g, &p, item, 0, 250000);
	answer_all(&g.hand);
	ck_assert(p.right);
	ck_assert_uint_eq(staged(&g), 500000);
	probe_read(&g, &p, item, 250000, 250000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.passed_through, 1);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 0);
	/* The next epoch finds no part of the item in memory. */
	probe_read(&g, &p, item, 0, 500000);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 1000000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_staging_never_passes_its_bound_and_the_oldest_goes_first)
{
	static struct probe p[16];
	struct cache_status s;
	struct rig g;

	rig_start(&g, "128K");
	for (uint64_t i = 0; i < 16; i++) {
		/* Half of each item is read, so no item has been read to its
		 * end. */
		probe_read(&g, &p[i], file_item(&g, i, LIMIT, 0), 0, LIMIT / 2);
		answer_all(&g.hand);
		ck_assert(p[i].right);
		cache_status(g.cache, &s);
		ck_assert_uint_le(s.staging_bytes, STAGING);
	}
	ck_assert_uint_eq(s.staging_peak_bytes, STAGING);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 12);
	/* The item that was read last is in memory, the one that was read first
	 * is not. */
	probe_read(&g, &p[15], p[15].item, LIMIT / 2, LIMIT / 2);
	ck_assert(p[15].done);
	probe_read(&g, &p[0], p[0].item, LIMIT / 2, LIMIT / 2);
	ck_assert(!p[0].done);
	rig_stop(&g);
}
END_TEST

START_TEST(test_readers_beyond_the_staging_bound_wait_and_are_served)
{
	static struct probe p[32];
	struct cache_status s;
	struct rig g;

	rig_start(&g, "128K");
	for (uint64_t i = 0; i < 32; i++)
		probe_read(&g, &p[i], file_item(&g, i, LIMIT, 0), 0, LIMIT);
	cache_status(g.cache, &s);
	ck_assert_uint_eq(s.parked, 32);
	ck_assert_uint_le(s.staging_bytes, STAGING);
	answer_all(&g.hand);
	for (int i = 0; i < 32; i++)
		ck_assert(p[i].done && p[i].right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 32 * LIMIT);
	rig_stop(&g);
}
END_TEST

START_TEST(test_demand_goes_before_prefetch)
{
	struct cache_item item;
	struct origin_read *r;
	struct probe p;
	struct rig g;

	rig_start(&g, "64M");
	/* A prefetch begins with no more than this many requests. */
	for (uint64_t i = 0; i < 16; i++) {
		item = file_item(&g, 100, 64 * LIMIT, i * CHUNK);
		cache_prefetch(g.cache, &item, 0, CHUNK);
	}
	ck_assert_uint_eq(g.hand.n, 4);
	probe_read(&g, &p, file_item(&g, 5, 5000, 0), 0, 5000);
	ck_assert_uint_eq(g.hand.n, 5);
	r = hand_take(&g.hand, 4);
	ck_assert_uint_eq(r->len, 5000);
	answer(r, 0);
	ck_assert(p.right);
	answer_all(&g.hand);
	rig_stop(&g);
}
END_TEST

START_TEST(test_requests_that_hang_do_not_keep_others_from_the_origin)
{
	static struct probe p[9];
	struct rig g;

	rig_start(&g, "16M");
	for (uint64_t i = 0; i < 9; i++)
		probe_read(&g, &p[i], file_item(&g, i, 1000, 0), 0, 1000);
	/* As many requests are in flight as the depth allows for planned
	 * requests, and a third more. */
	ck_assert_uint_eq(g.hand.n, 8);
	/* this waits until the request was started */
	answer(hand_take(&g.hand, 8), 0);
	ck_assert(p[8].right);
	ck_assert(!p[0].done);
	rig_stop(&g);
	ck_assert_int_eq(p[0].status, -ENOTCONN);
}
END_TEST

struct warm_probe {
	struct cache_warm w;
	_Atomic int status; /* 1: there is no answer yet */
};

static void warm_probe_done(struct cache_warm *w, int status)
{
	CONTAINER_OF(w, struct warm_probe, w)->status = status;
}

START_TEST(test_warming_fetches_what_fits_and_says_what_does_not)
{
	struct warm_probe w = {.w = {.done = warm_probe_done}, .status = 1};
	struct cache_item small, big;
	struct rig g;

	rig_start(&g, "512K");
	small = file_item(&g, 1, 100000, 0);
	big = file_item(&g, 2, 600000, 0);
	ck_assert_int_eq(cache_warm(g.cache, &small, &w.w), 0);
	answer_all(&g.hand);
	while (w.status == 1)
		sched_yield();
	ck_assert_int_eq(w.status, 0);
	ck_assert(cache_resident(g.cache, &small));
	ck_assert_int_eq(cache_warm(g.cache, &small, &w.w), -EEXIST);
	ck_assert_int_eq(cache_warm(g.cache, &big, &w.w), -ENOSPC);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_an_invalidated_item_fails_its_readers_and_leaves_its_tier)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	item = file_item(&g, 1, 1000, 0);
	probe_read(&g, &p, item, 0, 1000);
	answer_all(&g.hand);
	cache_settle(g.cache, 10 * NS_PER_S);
	cache_invalidate(g.cache, &item);
	ck_assert(!cache_resident(g.cache, &item));
	ck_assert_uint_eq(g.fix.counters.invalidated, 1);
	probe_read(&g, &p, item, 0, 1000);
	ck_assert(!p.done);
	cache_invalidate(g.cache, &item);
	ck_assert_int_eq(p.status, -ESTALE);
	answer_all(&g.hand);
	ck_assert(!cache_resident(g.cache, &item));
	rig_stop(&g);
}
END_TEST

/* A look-up may be outdated when the read comes, because the kernel reuses
 * numbers of files. */
START_TEST(test_an_item_whose_cookie_stands_for_another_file_is_stale)
{
	struct cache_item item;
	struct cache_warm w = {.status = 0};
	struct probe p;
	struct rig g;

	rig_start(&g, "8M");
	item = file_item(&g, 1, 1000, 0);
	item.cookie = 2;
	ck_assert_int_eq(cache_warm(g.cache, &item, &w), -ESTALE);
	probe_read(&g, &p, item, 0, 1000);
	ck_assert(p.done);
	ck_assert_int_eq(p.status, -ESTALE);
	ck_assert_uint_eq(g.hand.started, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_staging_bound_too_small_for_items_is_refused)
{
	struct cache_config config = {
		.limit_bytes = LIMIT,
		.chunk_bytes = CHUNK,
		.staging_bytes = LIMIT,
	};
	struct cache *c;
	struct error err;

	ck_assert_int_eq(cache_new(&c, &config, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "--staging"));
}
END_TEST

START_TEST(test_a_page_of_what_has_gone_costs_a_page)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	item = file_item(&g, 1, 500000, 0);
	probe_read(&g, &p, item, 0, 500000);
	answer_all(&g.hand);
	probe_wait(&p);
	wait_staged(&g, 0);
	/* The kernel drops a page, and a program reads it again. */
	probe_read(&g, &p, item, 40960, 4096);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000 + 4096);
	/* From then on, a read requests all missing bytes. */
	probe_read(&g, &p, item, 0, 500000);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 2 * 500000);
	/* An item that was never in memory is fetched as a whole. */
	probe_read(&g, &p, file_item(&g, 2, 500000, 0), 40960, 4096);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 3 * 500000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_has_gone_comes_whole_when_read_from_its_beginning)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	item = file_item(&g, 1, 500000, 0);
	for (unsigned epoch = 1; epoch <= 2; epoch++) {
		/* The kernel requests this many bytes when a program wants a
		 * page. */
		probe_read(&g, &p, item, 0, 16384);
		answer_all(&g.hand);
		probe_wait(&p);
		ck_assert_uint_eq(g.fix.counters.origin_bytes, epoch * 500000);
		probe_read(&g, &p, item, 16384, 500000 - 16384);
		probe_wait(&p);
		ck_assert(p.right);
		wait_staged(&g, 0);
	}
	rig_stop(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache");
	TCase *t = case_of(s, "cache");

	tcase_add_test(
		t, test_many_first_readers_cause_one_origin_read_of_each_byte);
	tcase_add_test(
		t, test_a_reader_gets_its_bytes_before_the_item_is_complete);
	tcase_add_test(t, test_a_published_item_is_a_hit_without_the_origin);
	tcase_add_test(
		t, test_a_reader_reads_and_stores_at_once_what_is_in_memory);
	tcase_add_test(
		t, test_a_read_that_cannot_be_done_at_once_becomes_a_request);
	tcase_add_test(t, test_a_reader_reads_no_more_at_once_than_one_request);
	tcase_add_test(t, test_what_is_fetched_ahead_is_never_read_at_once);
	tcase_add_test(
		t, test_an_entry_that_cannot_be_read_is_not_admitted_again);
	tcase_add_test(t, test_a_chunk_fetches_only_the_pages_that_are_read);
	tcase_add_test(
		t, test_a_failed_fetch_is_told_to_its_readers_and_tried_anew);
	tcase_add_test(t, test_a_stale_version_is_reported_and_never_cached);
	tcase_add_test(t,
		test_what_does_not_fit_passes_through_and_leaves_when_served);
	tcase_add_test(t,
		test_staging_never_passes_its_bound_and_the_oldest_goes_first);
	tcase_add_test(
		t, test_readers_beyond_the_staging_bound_wait_and_are_served);
	tcase_add_test(t, test_a_page_of_what_has_gone_costs_a_page);
	tcase_add_test(
		t, test_what_has_gone_comes_whole_when_read_from_its_beginning);
	tcase_add_test(t, test_demand_goes_before_prefetch);
	tcase_add_test(
		t, test_requests_that_hang_do_not_keep_others_from_the_origin);
	tcase_add_test(
		t, test_warming_fetches_what_fits_and_says_what_does_not);
	tcase_add_test(t,
		test_an_invalidated_item_fails_its_readers_and_leaves_its_tier);
	tcase_add_test(
		t, test_an_item_whose_cookie_stands_for_another_file_is_stale);
	tcase_add_test(t, test_a_staging_bound_too_small_for_items_is_refused);
	return run_suite(s);
}
