/* SPDX-License-Identifier: MIT */
/* Tests of planned items in the cache: the order in which they are fetched, how
 * long the cache holds them, and how much of the memory other reads get. */
#include "cache_fixture.h"
#include "suite.h"

struct held {
	struct cache_plan p;
	struct cache_item item;
	_Atomic bool told;
	int status;
};

static void held_done(struct cache_plan *p, int status)
{
	struct held *h = CONTAINER_OF(p, struct held, p);

	h->status = status;
	h->told = true;
}

static int hold_until(struct rig *g, struct held *h, uint64_t cookie,
	uint64_t size, uint64_t due_ns)
{
	*h = (struct held){.p = {.done = held_done}};
	h->p.due_ns = due_ns;
	h->item = file_item(g, cookie, size, 0);
	return cache_plan(g->cache, &h->item, &h->p);
}

static int hold(struct rig *g, struct held *h, uint64_t cookie, uint64_t size)
{
	return hold_until(g, h, cookie, size, 0);
}

static uint64_t planned(struct rig *g)
{
	struct cache_status s;

	cache_status(g->cache, &s);
	return s.planned_bytes;
}

START_TEST(test_a_planned_item_is_held_until_it_was_read)
{
	struct held h;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h, 1, 500000), 0);
	answer_all(&g.hand);
	ck_assert(!h.told);
	ck_assert_uint_eq(g.fix.counters.prefetch_issued, 1);
	probe_read(&g, &p, h.item, 0, 250000);
	ck_assert(p.done && p.right && !h.told);
	ck_assert_uint_eq(planned(&g), 500000);
	h.p.read = true;
	probe_read(&g, &p, h.item, 250000, 250000);
	ck_assert(p.done && p.right && h.told);
	ck_assert_int_eq(h.status, 1);
	ck_assert_uint_eq(planned(&g), 0);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.prefetch_used, 1);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_read_ends_only_the_plan_whose_reader_it_is_of)
{
	struct held h[3];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(hold(&g, &h[i], 1, 500000), 0);
	answer_all(&g.hand);
	/* First comes a stranger's read, then one read for each plan. */
	probe_read(&g, &p, h[0].item, 0, 500000);
	ck_assert(p.right && !h[0].told && !h[1].told && !h[2].told);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(planned(&g), 500000);
		h[i].p.read = true;
		probe_read(&g, &p, h[i].item, 0, 500000);
		ck_assert(p.right && h[i].told && h[i].status == 1);
		ck_assert(i == 2 || !h[i + 1].told);
	}
	ck_assert_uint_eq(planned(&g), 0);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.prefetch_carried_bytes, 1500000);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_was_read_a_moment_ago_serves_a_later_position)
{
	struct held h[2];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, 500000), 0);
	answer_all(&g.hand);
	h[0].p.read = true;
	probe_read(&g, &p, h[0].item, 0, 500000);
	ck_assert(h[0].told);
	/* The item is still in memory, because the second reader has not read
	 * it yet. */
	ck_assert_int_eq(hold(&g, &h[1], 1, 500000), 0);
	ck_assert(!h[1].told);
	ck_assert_uint_eq(planned(&g), 500000);
	h[1].p.read = true;
	probe_read(&g, &p, h[1].item, 0, 500000);
	ck_assert(p.right && h[1].told);
	ck_assert_int_eq(h[1].status, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.prefetch_carried_bytes, 500000);
	/* The reader has come, but got the item from another place. */
	h[0] = (struct held){
		.p = {.done = held_done, .read = true}, .item = h[1].item};
	ck_assert_int_eq(cache_plan(g.cache, &h[0].item, &h[0].p), -EALREADY);
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

/* Read an item for the first time that several readers with plans will read. */
static void read_shared(
	struct rig *g, struct cache_item item, unsigned plan_readers)
{
	struct probe p;

	probe_init(&p, item, 0, item.size);
	p.r.planned = true;
	p.r.plan_readers = plan_readers;
	probe_run(g, &p);
	answer_all(&g->hand);
	probe_wait(&p);
	ck_assert(p.right);
}

START_TEST(test_an_item_stays_until_all_who_share_it_have_come)
{
	struct held h[3];
	struct rig g;

	rig_start(&g, "128K");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hold(&g, &h[i], 1, 500000), 0);
	ck_assert_int_eq(hold(&g, &h[2], 2, 200000), 0);
	answer_all(&g.hand);
	/* The plans do not know whose reader it is. */
	for (int i = 0; i < 3; i++)
		h[i].p.read = true;
	read_shared(&g, h[0].item, 3);
	read_shared(&g, h[2].item, 1);
	ck_assert(h[0].told && h[1].told && h[2].told);
	/* The item that was read last is dropped, but not items that other
	 * readers will read. */
	for (int readers = 2; readers > 0; readers--) {
		while (staged(&g) > 500000)
			sched_yield();
		ck_assert_uint_eq(staged(&g), 500000);
		read_shared(&g, h[0].item, 0);
		ck_assert_uint_eq(g.fix.counters.origin_bytes, 700000);
	}
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_an_item_that_is_shared_makes_room_for_others)
{
	struct rig g;

	rig_start(&g, "128K");
	for (unsigned i = 1; i <= 3 * STAGING / LIMIT; i++)
		read_shared(&g, file_item(&g, i, LIMIT, 0), 2);
	ck_assert_uint_eq(staged(&g), STAGING);
	/* The last items are still in memory. */
	for (unsigned i = 3 * STAGING / LIMIT; i > 2 * STAGING / LIMIT; i--)
		read_shared(&g, file_item(&g, i, LIMIT, 0), 0);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 3 * STAGING);
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_its_reader_had_from_the_kernel_was_carried)
{
	struct held h[2];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hold(&g, &h[i], 1, 500000), 0);
	answer_all(&g.hand);
	h[0].p.read = true;
	probe_read(&g, &p, h[0].item, 0, 500000);
	ck_assert(h[0].told && !h[1].told);
	cache_unplan(g.cache, &h[1].p, true);
	ck_assert_int_eq(h[1].status, 1);
	ck_assert_uint_eq(g.fix.counters.prefetch_carried_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_its_reader_has_read_meanwhile_is_not_fetched_again)
{
	struct held h = {.p = {.done = held_done, .read = true}};
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	h.item = file_item(&g, 1, 500000, 0);
	/* The reader comes and goes, and leaves no data in memory. */
	ck_assert_int_eq(cache_plan(g.cache, &h.item, &h.p), -EALREADY);
	ck_assert_uint_eq(planned(&g), 0);
	ck_assert_uint_eq(g.fix.counters.prefetch_issued, 0);
	/* The item is still being read: it is planned while its reader reads.
	 */
	probe_read(&g, &p, h.item, 0, 500000);
	ck_assert(!p.done);
	ck_assert_int_eq(cache_plan(g.cache, &h.item, &h.p), 0);
	answer_all(&g.hand);
	ck_assert(p.done && p.right && h.told);
	ck_assert_int_eq(h.status, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_readers_of_other_items_never_push_out_a_planned_one)
{
	struct held h[2];
	struct cache_status s;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[1], 2, LIMIT), 0);
	answer_all(&g.hand);
	for (uint64_t i = 10; i < 30; i++) {
		/* Half of the item is read, so the item stays in memory until
		 * another one needs the memory. */
		probe_read(&g, &p, file_item(&g, i, LIMIT, 0), 0, LIMIT / 2);
		answer_all(&g.hand);
		ck_assert(p.done && p.right);
	}
	for (int i = 0; i < 2; i++) {
		probe_read(&g, &p, h[i].item, 0, LIMIT);
		ck_assert(p.done && p.right);
	}
	cache_status(g.cache, &s);
	ck_assert_uint_le(s.staging_peak_bytes, STAGING);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_planned_items_have_half_of_staging)
{
	struct held h[3];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[1], 2, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[2], 3, 1), -EAGAIN);
	/* Read one of these items again: the memory has it only once. */
	ck_assert_int_eq(hold(&g, &h[2], 2, LIMIT), 0);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 2 * LIMIT);
	h[1].p.read = h[2].p.read = true;
	probe_read(&g, &p, h[2].item, 0, LIMIT);
	ck_assert(h[1].told && h[2].told && !h[0].told);
	ck_assert_int_eq(hold(&g, &h[2], 3, LIMIT), 0);
	rig_stop(&g);
	ck_assert(h[0].told && h[2].told);
}
END_TEST

START_TEST(test_planned_items_are_fetched_one_after_another)
{
	struct held h[2];
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[1], 2, LIMIT), 0);
	/* Four requests are in flight: they are the whole first item, in pieces
	 * of 256 KiB. */
	ck_assert_uint_eq(g.hand.n, 4);
	for (uint64_t i = 0; i < 4; i++) {
		struct origin_read *r = hand_take(&g.hand, 0);

		ck_assert_uint_eq(r->off, i * CHUNK);
		ck_assert_uint_eq(r->len, CHUNK);
		answer(r, 0);
	}
	ck_assert_uint_eq(g.fix.counters.passed_through, 1);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.passed_through, 2);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_is_not_needed_soon_is_fetched_one_request_at_a_time)
{
	uint64_t later_ns = clock_now_ns() + 3600 * NS_PER_S;
	struct held h[2];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold_until(&g, &h[0], 1, LIMIT, later_ns), 0);
	ck_assert_int_eq(hold_until(&g, &h[1], 2, LIMIT, later_ns), 0);
	ck_assert_uint_eq(g.hand.n, 1);
	answer(hand_take(&g.hand, 0), 0);
	ck_assert_uint_eq(g.hand.n, 1);
	/* A reader of another item waits only for these requests. */
	probe_read(&g, &p, file_item(&g, 3, 5000, 0), 0, 5000);
	ck_assert_uint_eq(g.hand.n, 2);
	answer(hand_take(&g.hand, 1), 0);
	ck_assert(p.right);
	ck_assert_uint_eq(g.hand.n, 1);
	/* Now the item is due. */
	h[0].p.due_ns = 1;
	answer(hand_take(&g.hand, 0), 0);
	ck_assert_uint_gt(g.hand.n, 1);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.passed_through, 2);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_is_due_overtakes_what_another_needs_later)
{
	/* The items are due so late that one request at a time is enough,
	 * however slow the test runs. */
	static const uint64_t due_hours[] = {60, 61, 30, 20};
	uint64_t now_ns = clock_now_ns();
	struct held h[4];
	struct rig g;

	rig_start(&g, "128K");
	/* The first two items belong to one owner, the other two to another
	 * owner. */
	for (uint64_t i = 0; i < 4; i++) {
		h[i] = (struct held){.p = {.done = held_done}};
		h[i].p.due_ns = now_ns + due_hours[i] * 3600 * NS_PER_S;
		h[i].p.owner = &h[i - i % 2];
		h[i].item = file_item(&g, i + 1, 200000 + i, 0);
		ck_assert_int_eq(cache_plan(g.cache, &h[i].item, &h[i].p), 0);
	}
	for (uint64_t i = 0; i < 4; i++) {
		static const uint64_t order[] = {0, 2, 3, 1};

		ck_assert_uint_eq(g.hand.n, 1);
		ck_assert_uint_eq(g.hand.read[0]->len, 200000 + order[i]);
		answer(hand_take(&g.hand, 0), 0);
	}
	rig_stop(&g);
}
END_TEST

START_TEST(test_who_reads_ahead_waits_for_nothing_that_is_only_planned)
{
	static const uint64_t order[] = {1, 5, 6, 2, 3, 4};
	uint64_t later_ns = clock_now_ns() + 3600 * NS_PER_S;
	struct held h[4];
	struct probe p[2];
	struct rig g;

	rig_start(&g, "128K");
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_int_eq(
			hold_until(&g, &h[i], i + 1, 200001 + i, later_ns), 0);
	/* These items are not in the plan, because their reads began before it.
	 */
	for (uint64_t i = 0; i < 2; i++)
		probe_ask(&g, &p[i], file_item(&g, i + 5, 200005 + i, 0), 0,
			1000, true);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		ck_assert_uint_ge(g.hand.n, 1);
		ck_assert_uint_eq(g.hand.read[0]->len, 200000 + order[i]);
		answer(hand_take(&g.hand, 0), 0);
	}
	ck_assert(p[0].right && p[1].right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_reader_lifts_what_is_planned)
{
	struct held h[2];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[1], 2, 200000), 0);
	ck_assert_uint_eq(g.hand.n, 4);
	h[1].p.read = true;
	probe_read(&g, &p, h[1].item, 0, 200000);
	ck_assert_uint_eq(g.hand.n, 5);
	answer(hand_take(&g.hand, 4), 0);
	ck_assert(p.right);
	ck_assert_int_eq(h[1].status, 1);
	/* No item was fetched before it was requested. */
	ck_assert_uint_eq(g.fix.counters.prefetch_issued, 1);
	answer_all(&g.hand);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_fits_goes_into_its_tier)
{
	struct held h;
	struct rig g;

	rig_start(&g, "16M");
	ck_assert_int_eq(hold(&g, &h, 1, 5000), 0);
	answer_all(&g.hand);
	cache_settle(g.cache, 10 * NS_PER_S);
	wait_staged(&g, 0);
	while (!h.told)
		sched_yield();
	ck_assert_int_eq(h.status, 0);
	ck_assert_int_eq(hold(&g, &h, 1, 5000), -EEXIST);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_is_planned_no_more_goes_if_nobody_read_it)
{
	struct held h[4];
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, LIMIT), 0);
	ck_assert_int_eq(hold(&g, &h[1], 2, 200000), 0);
	ck_assert_int_eq(hold(&g, &h[2], 3, 210000), 0);
	/* The fetch never began, so no fetched byte is wasted. */
	cache_unplan(g.cache, &h[2].p, false);
	ck_assert(h[2].told);
	ck_assert_int_eq(h[2].status, -ECANCELED);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	answer_all(&g.hand);
	cache_unplan(g.cache, &h[1].p, false);
	ck_assert_int_eq(h[1].status, -ECANCELED);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 1);
	ck_assert_uint_eq(planned(&g), LIMIT);
	wait_staged(&g, LIMIT);
	/* The end of this item was reported already, so nothing happens. */
	h[1].told = false;
	cache_unplan(g.cache, &h[1].p, false);
	ck_assert(!h[1].told);
	/* This item is being fetched. */
	ck_assert_int_eq(hold(&g, &h[3], 4, 220000), 0);
	ck_assert_uint_eq(g.hand.n, 1);
	cache_unplan(g.cache, &h[3].p, false);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.prefetch_issued, 3);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 2);
	wait_staged(&g, LIMIT);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, LIMIT + 200000 + 220000);
	rig_stop(&g);
}
END_TEST

/* The plan's owner ends it as soon as its last position counts as read. That
 * read may not have reached the cache yet. */
START_TEST(test_what_a_counted_read_is_about_to_get_stays)
{
	struct held h[2];
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h[0], 1, 200000), 0);
	answer_all(&g.hand);
	ck_assert_int_eq(hold(&g, &h[1], 2, 210000), 0);
	ck_assert_uint_eq(g.hand.n, 1);
	for (int i = 0; i < 2; i++) {
		h[i].p.read = true;
		cache_unplan(g.cache, &h[i].p, false);
		ck_assert_int_eq(h[i].status, -ECANCELED);
	}
	ck_assert_uint_eq(planned(&g), 0);
	answer_all(&g.hand);
	probe_read(&g, &p, h[0].item, 0, 200000);
	ck_assert(p.done && p.right);
	probe_read(&g, &p, h[1].item, 0, 210000);
	ck_assert(p.done && p.right);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 200000 + 210000);
	ck_assert_uint_eq(g.fix.counters.prefetch_used, 2);
	ck_assert_uint_eq(g.fix.counters.prefetch_wasted, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_failed_fetch_ends_its_plan)
{
	struct held h;
	struct rig g;

	rig_start(&g, "128K");
	ck_assert_int_eq(hold(&g, &h, 1, 5000), 0);
	answer(hand_take(&g.hand, 0), -EIO);
	ck_assert(h.told);
	ck_assert_int_eq(h.status, -EIO);
	ck_assert_uint_eq(planned(&g), 0);
	rig_stop(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("planned");
	TCase *t = case_of(s, "planned");

	tcase_add_test(t, test_a_planned_item_is_held_until_it_was_read);
	tcase_add_test(t, test_a_read_ends_only_the_plan_whose_reader_it_is_of);
	tcase_add_test(
		t, test_what_was_read_a_moment_ago_serves_a_later_position);
	tcase_add_test(t, test_an_item_stays_until_all_who_share_it_have_come);
	tcase_add_test(t, test_an_item_that_is_shared_makes_room_for_others);
	tcase_add_test(t, test_what_its_reader_had_from_the_kernel_was_carried);
	tcase_add_test(t,
		test_what_its_reader_has_read_meanwhile_is_not_fetched_again);
	tcase_add_test(
		t, test_readers_of_other_items_never_push_out_a_planned_one);
	tcase_add_test(t, test_planned_items_have_half_of_staging);
	tcase_add_test(t, test_planned_items_are_fetched_one_after_another);
	tcase_add_test(t,
		test_what_is_not_needed_soon_is_fetched_one_request_at_a_time);
	tcase_add_test(t, test_what_is_due_overtakes_what_another_needs_later);
	tcase_add_test(
		t, test_who_reads_ahead_waits_for_nothing_that_is_only_planned);
	tcase_add_test(t, test_a_reader_lifts_what_is_planned);
	tcase_add_test(t, test_what_fits_goes_into_its_tier);
	tcase_add_test(t, test_what_is_planned_no_more_goes_if_nobody_read_it);
	tcase_add_test(t, test_what_a_counted_read_is_about_to_get_stays);
	tcase_add_test(t, test_a_failed_fetch_ends_its_plan);
	return run_suite(s);
}
