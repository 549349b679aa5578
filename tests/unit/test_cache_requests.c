/* SPDX-License-Identifier: MIT */
/*
 * The requests of the cache to an origin that answers on the test's command:
 * how neighbours share a request, how many are in flight, and how much of a
 * chunk each requests.
 */
#include "cache_fixture.h"
#include "mount/cache/cache_view.h"
#include "suite.h"

START_TEST(test_a_reader_gets_its_bytes_before_its_request_has_ended)
{
	uint8_t data[CHUNK];
	struct origin_read *r;
	struct probe p[3];
	struct rig g;

	rig_start(&g, "64M");
	for (uint64_t i = 0; i < CHUNK; i++)
		data[i] = byte_at(i);
	probe_read(&g, &p[0], file_item(&g, 1, CHUNK, 0), 0, 8192);
	probe_read(&g, &p[1], file_item(&g, 1, CHUNK, 0), 4096, 8192);
	probe_read(&g, &p[2], file_item(&g, 1, CHUNK, 0), CHUNK - 4096, 4096);
	r = hand_take(&g.hand, 0);
	r->data(r, 0, data, 4095);
	ck_assert(!p[0].done);
	r->data(r, 4095, data + 4095, 5000);
	ck_assert(p[0].done && p[0].right && !p[1].done);
	r->data(r, 9095, data + 9095, CHUNK - 9095);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, CHUNK);
	r->req.done(&r->req, 0);
	ck_assert(p[1].done && p[1].right);
	ck_assert(p[2].done && p[2].right);
	ck_assert_uint_eq(g.fix.counters.origin_reads, 1);
	rig_stop(&g);
}
END_TEST

/* There are more fills than the view shows, and requests for some of them. */
START_TEST(test_the_view_shows_the_oldest_fills_and_requests)
{
	enum { N = CACHE_VIEW_MAX + 4 };
	struct cache_view *v = malloc(sizeof(*v));
	struct probe p[N + 1];
	struct rig g;

	rig_start(&g, "64M");
	for (uint64_t i = 0; i < N; i++)
		probe_read(&g, &p[i], file_item(&g, i + 1, 10000, 0), 4096, 10);
	probe_read(&g, &p[N], file_item(&g, 1, 10000, 0), 8000, 10);
	cache_view(g.cache, v);
	ck_assert_uint_eq(v->nfills, N);
	ck_assert_uint_eq(v->nfill, CACHE_VIEW_MAX);
	for (unsigned i = 0; i < v->nfill; i++) {
		ck_assert(i == 0 || v->fill[i].age_ns <= v->fill[i - 1].age_ns);
		ck_assert_uint_eq(v->fill[i].waiters, i == 0 ? 2 : 1);
		ck_assert_uint_le(v->fill[i].waits_ns, v->fill[i].age_ns);
	}
	ck_assert_str_eq(v->fill[0].path, "file1");
	ck_assert_str_eq(v->fill[0].phase, "fetching");
	ck_assert_uint_eq(v->fill[0].inflight, 3);
	ck_assert_uint_eq(v->fill[0].wants_off, 4096);
	ck_assert_uint_eq(v->nrequests, g.hand.n);
	ck_assert_str_eq(v->request[0].path, "file1");
	ck_assert_uint_eq(v->request[0].off, 4096);
	ck_assert_uint_eq(v->request[0].len, 10000 - 4096);
	ck_assert(v->request[0].origin);
	answer_all(&g.hand);
	for (unsigned i = 0; i <= N; i++)
		probe_wait(&p[i]);
	cache_settle(g.cache, 10 * NS_PER_S);
	cache_view(g.cache, v);
	ck_assert_uint_eq(v->nfills + v->nrequests, 0);
	free(v);
	rig_stop(&g);
}
END_TEST

/* Eight requests of a chunk each are in flight, and eight more chunks are
 * wanted. */
static void want_chunks(struct rig *g, struct probe *p)
{
	rig_request_bytes = 4 * CHUNK;
	rig_start(g, "64M");
	for (uint64_t i = 0; i < 16; i++)
		probe_read(g, &p[i], file_item(g, 1, 64 * LIMIT, i * CHUNK), 0,
			CHUNK);
	ck_assert_uint_eq(g->hand.n, 8);
}

START_TEST(test_one_request_covers_neighbours_when_no_more_may_go_out)
{
	struct probe p[16];
	struct rig g;

	want_chunks(&g, p);
	for (int i = 0; i < 8; i++) {
		struct origin_read *r = hand_take(&g.hand, 0);

		ck_assert_uint_eq(r->len, CHUNK);
		answer(r, 0);
	}
	ck_assert_uint_eq(g.hand.n, 2);
	for (uint64_t i = 0; i < 2; i++) {
		struct origin_read *r = hand_take(&g.hand, 0);

		ck_assert_uint_eq(r->off, (8 + 4 * i) * CHUNK);
		ck_assert_uint_eq(r->len, 4 * CHUNK);
		answer(r, 0);
	}
	for (int i = 0; i < 16; i++)
		ck_assert(p[i].done && p[i].right);
	ck_assert_uint_eq(g.fix.counters.origin_reads, 10);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 16 * CHUNK);
	cache_settle(g.cache, NS_PER_S);
	ck_assert_uint_eq(g.fix.counters.admitted, 16);
	rig_stop(&g);
}
END_TEST

START_TEST(test_the_origin_says_with_how_many_requests_to_begin)
{
	struct cache_status s;
	struct rig g;

	rig_depth_first = _i;
	rig_start(&g, "64M");
	cache_status(g.cache, &s);
	ck_assert_uint_eq(s.surplus_depth, _i ? _i : 4);
	rig_stop(&g);
}
END_TEST

/*
 * Do the requests in flight cover at most a part of staging? A request that has
 * been in flight for a second no longer counts, because it may hang.
 */
static bool bytes_out_are_few(struct hand *h, uint64_t began_ns)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->n; i++)
		bytes += h->read[i]->len;
	pthread_mutex_unlock(&h->lock);
	return bytes <= STAGING / 4 || clock_now_ns() - began_ns >= NS_PER_S;
}

START_TEST(test_requests_in_flight_ask_for_a_part_of_staging_at_most)
{
	uint64_t size = LIMIT - 100;
	struct probe p[12];
	uint64_t began_ns;
	struct rig g;

	rig_memory_share = 4;
	rig_request_bytes = 4 * CHUNK;
	began_ns = clock_now_ns();
	rig_start(&g, "64M");
	/* Request one chunk of each of eight files, and then whole files. */
	for (uint64_t i = 0; i < 8; i++)
		probe_read(
			&g, &p[i], file_item(&g, i, 64 * LIMIT, 0), 0, CHUNK);
	ck_assert_uint_eq(g.hand.n, STAGING / 4 / CHUNK);
	for (uint64_t i = 8; i < 12; i++)
		probe_read(&g, &p[i], file_item(&g, i, size, 0), 0, size);
	while (g.hand.started < 12) {
		/* The next request may begin on a thread that admits a chunk.
		 */
		answer(hand_take(&g.hand, 0), 0);
		ck_assert(bytes_out_are_few(&g.hand, began_ns));
	}
	answer_all(&g.hand);
	for (int i = 0; i < 12; i++)
		ck_assert(p[i].done && p[i].right);
	rig_memory_share = 0;
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_request_takes_no_neighbours_beyond_its_part_of_staging)
{
	struct probe p[16];
	uint64_t began_ns;
	struct rig g;

	rig_memory_share = 4;
	rig_request_bytes = 4 * CHUNK;
	began_ns = clock_now_ns();
	rig_start(&g, "64M");
	for (uint64_t i = 0; i < 16; i++)
		probe_read(&g, &p[i], file_item(&g, 1, 64 * LIMIT, i * CHUNK),
			0, CHUNK);
	ck_assert_uint_eq(g.hand.n, 4);
	while (g.hand.n > 0) {
		answer(hand_take(&g.hand, 0), 0);
		ck_assert(bytes_out_are_few(&g.hand, began_ns));
	}
	for (int i = 0; i < 16; i++)
		ck_assert(p[i].done && p[i].right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 16 * CHUNK);
	rig_memory_share = 0;
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_request_of_neighbours_that_fails_spoils_none_that_came)
{
	struct origin_read *r;
	struct probe p[16];
	uint8_t *data = malloc(4 * CHUNK);
	struct rig g;

	want_chunks(&g, p);
	answer(hand_take(&g.hand, 0), 0);
	r = hand_take(&g.hand, 7);
	ck_assert_uint_eq(r->len, 4 * CHUNK);
	for (size_t i = 0; i < 4 * CHUNK; i++)
		data[i] = byte_at(r->off + i);
	/* The first answer ends one byte before the end of the first chunk, the
	 * second one is in the second chunk. */
	r->data(r, r->off, data, CHUNK - 1);
	ck_assert(!p[8].done);
	r->data(r, r->off + CHUNK - 1, data + CHUNK - 1, 9000);
	ck_assert(p[8].done && p[8].right && !p[9].done);
	r->req.done(&r->req, -EIO);
	for (int i = 9; i < 12; i++)
		ck_assert(p[i].done && p[i].status == -EIO);
	ck_assert(!p[12].done);
	answer_all(&g.hand);
	ck_assert(p[12].done && p[15].right);
	free(data);
	rig_stop(&g);
}
END_TEST
/* Open a rig whose origin wants requests for whole chunks. */
static void rig_whole(struct rig *g, const char *tier, size_t request_bytes)
{
	size_t usual = rig_request_bytes;

	rig_asks_whole = true;
	rig_request_bytes = request_bytes;
	rig_start(g, tier);
	rig_asks_whole = false;
	rig_request_bytes = usual;
}

START_TEST(test_neighbours_come_one_by_one_while_more_requests_may_go_out)
{
	size_t chunks = LIMIT / CHUNK;
	struct probe whole[4], p[4];
	struct rig g;

	rig_whole(&g, "64M", 4 * CHUNK);
	/* Four requests take all memory, so the chunks have to wait. */
	for (uint64_t i = 0; i < 4; i++)
		probe_read(&g, &whole[i], file_item(&g, 2 + i, LIMIT, 0), 0,
			LIMIT);
	for (uint64_t i = 0; i < chunks; i++)
		probe_read(&g, &p[i], file_item(&g, 1, 64 * LIMIT, i * CHUNK),
			0, CHUNK);
	ck_assert_uint_eq(g.hand.n, 4);
	/* There is memory for all chunks, and five requests may be in flight.
	 */
	answer(hand_take(&g.hand, 0), 0);
	for (uint64_t i = 0; i < chunks; i++) {
		struct origin_read *r = hand_take(&g.hand, 3);

		ck_assert_uint_eq(r->off, i * CHUNK);
		ck_assert_uint_eq(r->len, CHUNK);
		answer(r, 0);
		ck_assert(p[i].done && p[i].right);
	}
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.origin_reads, 4 + chunks);
	rig_stop(&g);
}
END_TEST

/* Returns the only request in flight. */
static struct origin_read *only_request(struct rig *g, uint64_t off, size_t len)
{
	struct origin_read *r;

	ck_assert_uint_eq(g->hand.n, 1);
	r = hand_take(&g->hand, 0);
	ck_assert_uint_eq(r->off, off);
	ck_assert_uint_eq(r->len, len);
	return r;
}

START_TEST(test_a_chunk_that_a_tier_will_keep_comes_by_one_request)
{
	struct cache_item item;
	struct origin_read *r;
	struct probe p[3];
	uint8_t data[8192];
	struct rig g;

	rig_whole(&g, "16M", 4 * CHUNK);
	item = file_item(&g, 1, 64 * LIMIT, 5 * CHUNK);
	probe_read(&g, &p[0], item, CHUNK / 2, 4096);
	probe_read(&g, &p[1], item, 0, 8192);
	probe_read(&g, &p[2], item, CHUNK - 100, 100);
	cache_prefetch(g.cache, &item, 0, CHUNK);
	r = only_request(&g, item.base, CHUNK);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = byte_at(r->off + i);
	/* The first bytes do not wait for the rest. */
	r->data(r, r->off, data, sizeof(data));
	ck_assert(p[1].done && p[1].right && !p[0].done);
	for (size_t at = sizeof(data); at < CHUNK; at += sizeof(data)) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = byte_at(r->off + at + i);
		r->data(r, r->off + at, data, sizeof(data));
	}
	r->req.done(&r->req, 0);
	ck_assert(p[0].done && p[0].right && p[2].done && p[2].right);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert(cache_resident(g.cache, &item));
	ck_assert_uint_eq(g.fix.counters.origin_reads, 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_whole_file_is_asked_for_from_its_beginning)
{
	struct probe p;
	struct rig g;

	rig_whole(&g, "64K", 4 * CHUNK);
	probe_read(&g, &p, file_item(&g, 1, LIMIT, 0), LIMIT - 4096, 4096);
	answer(only_request(&g, 0, LIMIT), 0);
	ck_assert(p.done && p.right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_chunk_longer_than_a_request_comes_by_as_few_as_can_be)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_whole(&g, "16M", CHUNK / 2);
	item = file_item(&g, 1, 64 * LIMIT, 5 * CHUNK);
	probe_read(&g, &p, item, CHUNK - 8192, 4096);
	answer(only_request(&g, item.base + CHUNK / 2, CHUNK / 2), 0);
	ck_assert(p.done && p.right);
	probe_read(&g, &p, item, 4096, 4096);
	answer(only_request(&g, item.base, CHUNK / 2), 0);
	ck_assert(p.done && p.right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_passes_through_is_asked_for_as_it_is_read)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_whole(&g, "64K", 4 * CHUNK);
	item = file_item(&g, 1, 64 * LIMIT, 5 * CHUNK);
	probe_read(&g, &p, item, 8192, 4096);
	answer(only_request(&g, item.base + 8192, 4096), 0);
	ck_assert(p.done && p.right);
	/* Ahead of a reader, the request reaches the end of the file. */
	cache_prefetch(g.cache, &item, 65536, 4096);
	answer(only_request(&g, item.base + 65536, CHUNK - 65536), 0);
	/* A reader that begins a file will probably continue. */
	probe_read(&g, &p, file_item(&g, 2, 64 * LIMIT, 0), 0, 4096);
	answer(only_request(&g, 0, CHUNK), 0);
	ck_assert(p.done && p.right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_request_takes_all_of_a_neighbour_or_nothing)
{
	struct probe p[16];
	struct rig g;

	rig_whole(&g, "64M", 4 * CHUNK - 65536);
	for (uint64_t i = 0; i < 16; i++)
		probe_read(&g, &p[i], file_item(&g, 1, 64 * LIMIT, i * CHUNK),
			0, CHUNK);
	while (g.hand.n > 0) {
		struct origin_read *r = hand_take(&g.hand, 0);

		ck_assert_uint_eq(r->off % CHUNK, 0);
		ck_assert_uint_eq(r->len % CHUNK, 0);
		answer(r, 0);
	}
	for (int i = 0; i < 16; i++)
		ck_assert(p[i].done && p[i].right);
	/* The first request had eight chunks, the next ones three, three and
	 * two. */
	ck_assert_uint_eq(g.fix.counters.origin_reads, 11);
	rig_stop(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache-requests");
	TCase *t = case_of(s, "requests");

	tcase_add_loop_test(
		t, test_the_origin_says_with_how_many_requests_to_begin, 0, 3);
	tcase_add_test(t, test_the_view_shows_the_oldest_fills_and_requests);
	tcase_add_test(
		t, test_a_reader_gets_its_bytes_before_its_request_has_ended);
	tcase_add_test(
		t, test_requests_in_flight_ask_for_a_part_of_staging_at_most);
	tcase_add_test(t,
		test_a_request_takes_no_neighbours_beyond_its_part_of_staging);
	tcase_add_test(t,
		test_a_request_of_neighbours_that_fails_spoils_none_that_came);
	tcase_add_test(
		t, test_one_request_covers_neighbours_when_no_more_may_go_out);
	tcase_add_test(t,
		test_neighbours_come_one_by_one_while_more_requests_may_go_out);
	tcase_add_test(
		t, test_a_chunk_that_a_tier_will_keep_comes_by_one_request);
	tcase_add_test(t, test_a_whole_file_is_asked_for_from_its_beginning);
	tcase_add_test(t,
		test_a_chunk_longer_than_a_request_comes_by_as_few_as_can_be);
	tcase_add_test(t, test_what_passes_through_is_asked_for_as_it_is_read);
	tcase_add_test(t, test_a_request_takes_all_of_a_neighbour_or_nothing);
	return run_suite(s);
}
