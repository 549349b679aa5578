/* SPDX-License-Identifier: MIT */
/* Tests of providers, which the cache asks before the origin. The providers are
 * stand-ins that answer when the test says so. The tests check which provider
 * is asked for which bytes, in which order, and with which result. */
#include <semaphore.h>
#include <stdatomic.h>

#include "mount/cache/cache_view.h"
#include "providers_fixture.h"

START_TEST(test_what_a_provider_has_is_not_asked_of_the_origin)
{
	struct probe p;

	start(1, 8, EVER);
	read_whole(&p, 1);
	for (size_t i = 0; i < SIZE / UNIT; i++) {
		struct provider_read *r = asked(&stand_in[0]);

		ck_assert_str_eq(r->item.path, "file1");
		ck_assert_uint_eq(r->off, i * UNIT);
		ck_assert_uint_eq(r->item.size, SIZE);
		give_all(r);
	}
	finish(&p);
	ck_assert_uint_eq(g.hand.started, 0);
	ck_assert_uint_eq(counts(0).hits, SIZE / UNIT);
	ck_assert_uint_eq(counts(0).bytes, SIZE);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 0);
	/* Nothing is pushed to this provider, either. */
	ck_assert_uint_eq(stand_in[0].npushes, 0);
	rig_stop(&g);
}
END_TEST

static const int refusals[] = {-ENOENT, -ESTALE, -EIO};

START_TEST(test_the_origin_is_asked_for_what_a_provider_does_not_give)
{
	struct cache_provider_counts n;
	struct probe p;

	start(1, 8, EVER);
	read_whole(&p, 1);
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, refusals[_i]);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&p);
	take_push();
	n = counts(0);
	ck_assert_uint_eq(_i == 0 ? n.misses
			: _i == 1 ? n.stale
				  : n.failed,
		SIZE / UNIT);
	ck_assert_uint_eq(n.hits + n.misses + n.stale + n.failed, n.asked);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, SIZE);
	/* If a provider has another version, this does not mean that the file
	 * has changed. */
	ck_assert_uint_eq(g.stale, 0);
	ck_assert_uint_eq(g.fix.counters.stale_reads, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_came_of_a_provider_that_fails_is_kept)
{
	struct probe p;

	start(1, 8, EVER);
	read_whole(&p, 1);
	give_all(asked(&stand_in[0]));
	give(asked(&stand_in[0]), UNIT / 2, -EIO);
	give_all(asked(&stand_in[0]));
	origin_gives(UNIT + UNIT / 2, UNIT / 2);
	give_all(asked(&stand_in[0]));
	finish(&p);
	take_push();
	ck_assert_uint_eq(g.fix.counters.origin_bytes, UNIT / 2);
	ck_assert_uint_eq(counts(0).bytes, SIZE - UNIT / 2);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_late_provider_is_given_up_and_the_origin_asked)
{
	struct probe p;

	start(1, 8, NS_PER_MS);
	read_whole(&p, 1);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE)) {
		answer_all(&g.hand);
		sched_yield();
	}
	finish(&p);
	take_push();
	ck_assert_uint_eq(counts(0).late, SIZE / UNIT);
	ck_assert_uint_eq(stand_in[0].abandoned, SIZE / UNIT);
	rig_stop(&g);
}
END_TEST

/* `refrain status --debug` is mainly used to find such a provider. */
START_TEST(test_the_view_shows_requests_that_were_given_up)
{
	struct cache_view *v = malloc(sizeof(*v));
	struct probe p;

	start(1, 8, NS_PER_MS);
	stand_in[0].s.ops = &stubborn_ops;
	read_whole(&p, 1);
	while (__atomic_load_n(&stand_in[0].abandoned, __ATOMIC_ACQUIRE) <
		SIZE / UNIT)
		sched_yield();
	cache_view(g.cache, v);
	ck_assert_uint_eq(v->nrequests, SIZE / UNIT);
	ck_assert_uint_eq(v->nrequest, SIZE / UNIT);
	for (unsigned i = 0; i < v->nrequest; i++) {
		ck_assert(v->request[i].slow && !v->request[i].origin);
		ck_assert_str_eq(v->request[i].path, "file1");
	}
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ECANCELED);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&p);
	free(v);
	rig_stop(&g);
}
END_TEST

START_TEST(test_providers_are_asked_in_order)
{
	struct probe p;

	start(2, 8, EVER);
	read_whole(&p, 1);
	give_all(asked(&stand_in[0]));
	for (size_t i = 1; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ENOENT);
	give_all(asked(&stand_in[1]));
	for (size_t i = 2; i < SIZE / UNIT; i++)
		give(asked(&stand_in[1]), 0, -ENOENT);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&p);
	take_push();
	ck_assert_uint_eq(counts(0).hits, 1);
	ck_assert_uint_eq(counts(0).misses, SIZE / UNIT - 1);
	ck_assert_uint_eq(counts(1).hits, 1);
	ck_assert_uint_eq(counts(1).misses, SIZE / UNIT - 2);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, SIZE - 2 * UNIT);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_provider_has_a_depth_of_its_own)
{
	struct probe p[2];

	start(1, 1, EVER);
	read_whole(&p[0], 1);
	read_whole(&p[1], 2);
	/* The pushes of the two files take turns, one unit at a time; the
	 * origin is not delayed. */
	for (size_t i = 0; i < SIZE / UNIT * 2; i++) {
		ck_assert_uint_le(in_hand(&stand_in[0]), 1);
		give(asked(&stand_in[0]), 0, -ENOENT);
		answer_all(&g.hand);
	}
	while (!__atomic_load_n(&p[0].done, __ATOMIC_ACQUIRE) ||
		!__atomic_load_n(&p[1].done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&p[0]);
	finish(&p[1]);
	take_push();
	/* The second push finds the first one in progress, or finished. */
	while (counts(0).pushed + counts(0).push_dropped < 2)
		if (__atomic_load_n(&stand_in[0].npushes, __ATOMIC_ACQUIRE))
			take_push();
	rig_stop(&g);
}
END_TEST

START_TEST(test_providers_do_not_share_their_depth)
{
	struct provider_read *held;
	struct probe p[2];

	start(2, 1, EVER);
	probe_read(&g, &p[0], file_item(&g, 1, UNIT, 0), 0, UNIT);
	read_whole(&p[1], 2);
	give(asked(&stand_in[0]), 0, -ENOENT);
	held = asked(&stand_in[1]);
	/* At the same time the first provider gets its units of the file. */
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give_all(asked(&stand_in[0]));
	finish(&p[1]);
	give_all(held);
	probe_wait(&p[0]);
	ck_assert_int_eq(p[0].status, (int)UNIT);
	ck_assert_uint_eq(counts(1).asked, 1);
	rig_stop(&g);
}
END_TEST

/* Read a whole file from the origin. */
static void read_from_origin(uint64_t cookie)
{
	struct probe p;

	read_whole(&p, cookie);
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ENOENT);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&p);
}

START_TEST(test_what_only_the_origin_had_is_pushed)
{
	struct cache_item item;
	struct provider_push *p;
	struct hash128 key;
	const uint8_t *b;

	start(1, 8, EVER);
	read_from_origin(7);
	p = pushed(&stand_in[0]);
	item = file_item(&g, 7, SIZE, 0);
	key = cache_key(g.cache, &item);
	ck_assert_uint_eq(p->item.key.lo, key.lo);
	ck_assert_uint_eq(p->item.key.hi, key.hi);
	ck_assert_str_eq(p->item.path, "file7");
	ck_assert_uint_eq(p->item.size, SIZE);
	/* The entry is in its tier, and the bytes are still in memory. */
	cache_settle(g.cache, EVER);
	b = p->data;
	for (size_t i = 0; i < SIZE; i++)
		ck_assert_uint_eq(b[i], byte_at(i));
	p->done(p, 0);
	ck_assert_uint_eq(counts(0).pushed, 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_pushes_are_bounded_and_dropped_ones_are_counted)
{
	struct provider_push *p;

	start(1, 8, EVER);
	read_from_origin(1);
	p = pushed(&stand_in[0]);
	read_from_origin(2);
	ck_assert_uint_eq(counts(0).push_dropped, 1);
	p->done(p, -ENOSPC);
	ck_assert_uint_eq(counts(0).pushed, 0);
	read_from_origin(3);
	take_push();
	ck_assert_uint_eq(counts(0).pushed, 1);
	ck_assert_uint_eq(counts(0).push_dropped, 1);
	rig_stop(&g);
}
END_TEST

static bool in_tier(uint64_t cookie)
{
	struct cache_item item = file_item(&g, cookie, SIZE, 0);

	cache_settle(g.cache, EVER);
	return cache_resident(g.cache, &item);
}

START_TEST(test_a_tier_keeps_only_what_a_provider_in_its_place_refused)
{
	struct provider_push *p;

	start(1, 8, EVER);
	atomic_store(&stand_in[0].s.instead_of_tiers, true);
	read_from_origin(1);
	take_push();
	ck_assert(!in_tier(1));
	read_from_origin(2);
	p = pushed(&stand_in[0]);
	p->done(p, -ENOSPC);
	ck_assert(in_tier(2));
	read_from_origin(3);
	p = pushed(&stand_in[0]);
	p->done(p, -EIO);
	ck_assert(!in_tier(3));
	ck_assert_uint_eq(g.fix.counters.admitted, 1);
	ck_assert_uint_eq(g.fix.counters.passed_through, 1);
	atomic_store(&stand_in[0].s.instead_of_tiers, false);
	read_from_origin(4);
	take_push();
	ck_assert(in_tier(4));
	rig_stop(&g);
}
END_TEST

/* The results of pushes, and the expected result of warming. */
static const int offers[][2] = {{0, 0}, {-ENOSPC, 0}, {-EIO, -EIO}};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int status; /* 1: there is no result yet */
} warmed = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1};

static void warm_answered(struct cache_warm *w, int status)
{
	(void)w;
	pthread_mutex_lock(&warmed.lock);
	warmed.status = status;
	pthread_cond_broadcast(&warmed.cond);
	pthread_mutex_unlock(&warmed.lock);
}

START_TEST(test_warming_ends_when_a_provider_takes_the_item)
{
	struct cache_warm w = {.done = warm_answered};
	struct cache_item item;
	struct provider_push *p;

	start(1, 8, EVER);
	atomic_store(&stand_in[0].s.instead_of_tiers, true);
	item = file_item(&g, 1, SIZE, 0);
	ck_assert_int_eq(cache_warm(g.cache, &item, &w), 0);
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ENOENT);
	while (__atomic_load_n(&stand_in[0].npushes, __ATOMIC_ACQUIRE) == 0)
		answer_all(&g.hand);
	p = pushed(&stand_in[0]);
	ck_assert_int_eq(warmed.status, 1);
	p->done(p, offers[_i][0]);
	pthread_mutex_lock(&warmed.lock);
	while (warmed.status == 1)
		pthread_cond_wait(&warmed.cond, &warmed.lock);
	pthread_mutex_unlock(&warmed.lock);
	ck_assert_int_eq(warmed.status, offers[_i][1]);
	rig_stop(&g);
}
END_TEST

START_TEST(test_stopping_gives_up_what_providers_were_asked)
{
	struct probe p;

	start(2, 8, EVER);
	read_whole(&p, 1);
	while (in_hand(&stand_in[0]) < SIZE / UNIT)
		sched_yield();
	rig_close(&g);
	probe_wait(&p);
	ck_assert_int_eq(p.status, -ENOTCONN);
	ck_assert_uint_eq(stand_in[0].abandoned, SIZE / UNIT);
	fixture_release(&g.fix);
}
END_TEST

/* The thread that stops is in its first abandon while the requests become late.
 */
static struct timer became_late;
static sem_t are_late;
static pthread_t stopper;
static atomic_uint given_up;

static void say_late(struct timer *t)
{
	(void)t;
	ck_assert_int_eq(sem_post(&are_late), 0);
}

static void long_abandon(struct provider *s, struct provider_read *r)
{
	if (atomic_fetch_add(&given_up, 1) == 0 &&
		pthread_equal(pthread_self(), stopper)) {
		timer_set(g.timers, &became_late,
			clock_now_ns() + s->traits.patience_ns);
		while (sem_wait(&are_late) != 0)
			;
	}
	stand_in_abandon(s, r);
}

START_TEST(test_stopping_gives_up_each_request_once)
{
	static const struct provider_ops ops = {
		.read = stand_in_read,
		.abandon = long_abandon,
	};
	struct probe p;

	start(1, 8, 200 * NS_PER_MS);
	stand_in[0].s.ops = &ops;
	timer_init(&became_late, say_late);
	ck_assert_int_eq(sem_init(&are_late, 0, 0), 0);
	stopper = pthread_self();
	read_whole(&p, 1);
	while (in_hand(&stand_in[0]) < SIZE / UNIT)
		sched_yield();
	rig_close(&g);
	probe_wait(&p);
	ck_assert_uint_eq(atomic_load(&given_up), SIZE / UNIT);
	ck_assert_uint_eq(stand_in[0].abandoned, SIZE / UNIT);
	fixture_release(&g.fix);
}
END_TEST

START_TEST(test_pages_of_a_provider_come_in_any_order)
{
	const size_t half = UNIT / 2;
	struct provider_read *r;
	uint8_t data[UNIT];
	struct probe p;

	start(1, 8, EVER);
	probe_read(&g, &p, file_item(&g, 1, UNIT, 0), 0, UNIT);
	r = asked(&stand_in[0]);
	for (size_t i = 0; i < UNIT; i++)
		data[i] = byte_at(i);
	r->data(r, half, data + half, half / 2);
	r->data(r, 0, data, half / 2);
	r->done(r, -ENOENT);
	/* The provider continues after its last request has ended. */
	origin_gives(half + half / 2, half / 2);
	origin_gives(half / 2, half / 2);
	probe_wait(&p);
	ck_assert_int_eq(p.status, (int)UNIT);
	ck_assert(p.right);
	take_push();
	ck_assert_uint_eq(counts(0).bytes, half);
	rig_stop(&g);
}
END_TEST

/* The provider gets the first unit before the rest of the item has come. */
START_TEST(test_units_are_pushed_as_they_come_and_the_end_is_told_once)
{
	struct provider_push *p;
	struct probe probe;

	unit_bytes = UNIT;
	start(1, 8, EVER);
	read_whole(&probe, 1);
	give_all(asked(&stand_in[0]));
	for (size_t i = 1; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ENOENT);
	answer(hand_take(&g.hand, 0), 0);
	p = pushed(&stand_in[0]);
	ck_assert_uint_eq(p->len, UNIT);
	ck_assert_uint_eq(p->off, UNIT);
	for (size_t i = 0; i < p->len; i++)
		ck_assert_uint_eq(
			((const uint8_t *)p->data)[i], byte_at(p->off + i));
	p->done(p, 0);
	ck_assert_uint_eq(stand_in[0].ended, 0);
	while (!__atomic_load_n(&probe.done, __ATOMIC_ACQUIRE))
		answer_all(&g.hand);
	finish(&probe);
	for (size_t i = 2; i < SIZE / UNIT; i++) {
		ck_assert_uint_eq(stand_in[0].ended, 0);
		take_push();
	}
	ck_assert_uint_eq(stand_in[0].ended, 1);
	ck_assert_uint_eq(counts(0).pushed, SIZE / UNIT - 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_the_end_is_told_when_the_origin_fails)
{
	struct probe p;

	unit_bytes = UNIT;
	start(1, 8, EVER);
	read_whole(&p, 1);
	for (size_t i = 0; i < SIZE / UNIT; i++)
		give(asked(&stand_in[0]), 0, -ENOENT);
	answer(hand_take(&g.hand, 0), -EIO);
	probe_wait(&p);
	ck_assert_int_eq(p.status, -EIO);
	ck_assert_uint_eq(stand_in[0].ended, 1);
	while (g.hand.n > 0)
		answer(hand_take(&g.hand, 0), -EIO);
	ck_assert_uint_eq(stand_in[0].ended, 1);
	rig_stop(&g);
}
END_TEST

/* A small read of a chunk fetches one of the units that contain it. */
START_TEST(test_chunks_are_fetched_in_whole_units)
{
	struct provider_read *r;
	struct probe p;

	unit_bytes = UNIT;
	start(1, 8, EVER);
	probe_read(&g, &p, file_item(&g, 1, 2 * LIMIT, 0), UNIT + 8192, 4096);
	r = asked(&stand_in[0]);
	ck_assert_uint_eq(r->off, UNIT);
	ck_assert_uint_eq(r->len, UNIT);
	ck_assert(r->urgent);
	give(r, 0, -ENOENT);
	origin_gives(UNIT, UNIT);
	probe_wait(&p);
	ck_assert_int_eq(p.status, 4096);
	ck_assert(p.right);
	take_push();
	ck_assert_uint_eq(stand_in[0].ended, 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_read_in_flight_becomes_urgent_with_its_first_reader)
{
	struct cache_item item;
	struct provider_read *r;
	struct probe p;

	start(1, 8, EVER);
	item = file_item(&g, 1, UNIT, 0);
	cache_prefetch(g.cache, &item, 0, UNIT);
	r = asked(&stand_in[0]);
	ck_assert(!r->urgent);
	probe_read(&g, &p, item, 0, UNIT);
	ck_assert(r->urgent);
	give_all(r);
	probe_wait(&p);
	rig_stop(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("providers");
	TCase *t = case_of(s, "providers");

	tcase_add_test(t, test_what_a_provider_has_is_not_asked_of_the_origin);
	tcase_add_loop_test(t,
		test_the_origin_is_asked_for_what_a_provider_does_not_give, 0,
		3);
	tcase_add_test(t, test_what_came_of_a_provider_that_fails_is_kept);
	tcase_add_test(
		t, test_a_late_provider_is_given_up_and_the_origin_asked);
	tcase_add_test(t, test_the_view_shows_requests_that_were_given_up);
	tcase_add_test(t, test_providers_are_asked_in_order);
	tcase_add_test(t, test_a_provider_has_a_depth_of_its_own);
	tcase_add_test(t, test_providers_do_not_share_their_depth);
	tcase_add_test(t, test_what_only_the_origin_had_is_pushed);
	tcase_add_test(t, test_pushes_are_bounded_and_dropped_ones_are_counted);
	tcase_add_test(
		t, test_a_tier_keeps_only_what_a_provider_in_its_place_refused);
	tcase_add_loop_test(
		t, test_warming_ends_when_a_provider_takes_the_item, 0, 3);
	tcase_add_test(t, test_stopping_gives_up_what_providers_were_asked);
	tcase_add_test(t, test_stopping_gives_up_each_request_once);
	tcase_add_test(t, test_pages_of_a_provider_come_in_any_order);
	tcase_add_test(
		t, test_units_are_pushed_as_they_come_and_the_end_is_told_once);
	tcase_add_test(t, test_the_end_is_told_when_the_origin_fails);
	tcase_add_test(t, test_chunks_are_fetched_in_whole_units);
	tcase_add_test(
		t, test_a_read_in_flight_becomes_urgent_with_its_first_reader);
	return run_suite(s);
}
