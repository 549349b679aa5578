/* SPDX-License-Identifier: MIT */
/* The depth at an origin, against origins that are formulas or models. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "mount/cache/depth.h"
#include "suite.h"

#define REQUEST_BYTES 262144
#define MOST 64

/* An origin that takes latency_ns for each request, and delivers at most
 * bytes_per_s for all of them together. */
struct formula {
	double latency_ns, bytes_per_s;
};

static void run(struct depth *d, struct formula o, uint64_t *now_ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		double by_latency = o.latency_ns / depth_limit(d);
		double by_rate = REQUEST_BYTES * 1e9 / o.bytes_per_s;

		*now_ns +=
			(uint64_t)(by_latency > by_rate ? by_latency : by_rate);
		/* Requests that wait for each other take longer. */
		depth_note(d,
			&(struct depth_answer){.bytes = REQUEST_BYTES,
				.took_ns = (uint64_t)(depth_limit(d) *
					(by_latency > by_rate ? by_latency
							      : by_rate)),
				.now_ns = *now_ns,
				.going = depth_limit(d),
				.more = true});
	}
}

/* Returns the most frequent depth of answers at the end of a long run. */
static unsigned usual_depth(struct formula o)
{
	unsigned seen[MOST + 1] = {0};
	uint64_t now_ns = 1;
	unsigned usual = 1;
	struct depth d;

	depth_init(&d, MOST);
	run(&d, o, &now_ns, 2000);
	for (int i = 0; i < 4000; i++) {
		run(&d, o, &now_ns, 1);
		seen[depth_limit(&d)]++;
	}
	for (unsigned i = 1; i <= MOST; i++)
		if (seen[i] > seen[usual])
			usual = i;
	return usual;
}

START_TEST(test_an_origin_that_one_request_fills_is_asked_for_one)
{
	/* At 50 MB/s a request takes 5 ms, of which 1 ms is latency. */
	ck_assert_uint_eq(usual_depth((struct formula){1e6, 50e6}), 1);
}
END_TEST

START_TEST(test_a_distant_origin_is_asked_for_as_much_as_it_takes)
{
	/* With a latency of 100 ms, 20 requests use 50 MB/s fully. */
	ck_assert_uint_eq(usual_depth((struct formula){100e6, 50e6}), 32);
	/* With a latency of 20 ms, 4 requests almost use 50 MB/s fully. */
	ck_assert_uint_eq(usual_depth((struct formula){20e6, 50e6}), 4);
	/* Only latency is a limit: the depth is the largest useful one. */
	ck_assert_uint_eq(usual_depth((struct formula){5e6, 1e12}), MOST);
}
END_TEST

START_TEST(test_an_origin_that_changes_is_followed)
{
	uint64_t now_ns = 1;
	struct depth d;

	depth_init(&d, MOST);
	run(&d, (struct formula){1e6, 50e6}, &now_ns, 3000);
	ck_assert_uint_le(depth_limit(&d), 2);
	run(&d, (struct formula){100e6, 50e6}, &now_ns, 20000);
	ck_assert_uint_ge(depth_limit(&d), 16);
}
END_TEST

START_TEST(test_times_when_we_did_not_ask_do_not_count)
{
	uint64_t now_ns = 1;
	struct depth d;
	unsigned before;

	depth_init(&d, MOST);
	run(&d, (struct formula){1e6, 50e6}, &now_ns, 3000);
	before = d.level;
	for (int i = 0; i < 1000; i++) {
		now_ns += NS_PER_S;
		depth_note(&d,
			&(struct depth_answer){.bytes = REQUEST_BYTES,
				.took_ns = NS_PER_MS,
				.now_ns = now_ns,
				.going = depth_limit(&d)});
	}
	ck_assert_uint_eq(d.level, before);
}
END_TEST

START_TEST(test_an_origin_that_only_fails_has_some_depth)
{
	struct depth_answer failed = {
		.took_ns = NS_PER_MS, .going = MOST, .more = true};
	struct depth d;

	depth_init(&d, MOST);
	for (int i = 0; i < 1000; i++) {
		failed.now_ns += 20 * NS_PER_MS;
		depth_note(&d, &failed);
	}
	ck_assert_uint_ge(depth_limit(&d), 1);
	ck_assert_uint_le(depth_limit(&d), MOST);
}
END_TEST

/* Returns the part of a long time in which the rate is clearly below the best
 * rate, because the depth is wrong. */
static uint64_t search_ns(struct formula o)
{
	uint64_t now_ns = 1, bad_ns = 0;
	struct depth d;

	depth_init(&d, MOST);
	while (now_ns < 100 * NS_PER_S) {
		uint64_t before_ns = now_ns;
		unsigned limit = depth_limit(&d);
		double by_rate = REQUEST_BYTES * 1e9 / o.bytes_per_s;
		double best = o.latency_ns / MOST;

		run(&d, o, &now_ns, 1);
		best = best > by_rate ? best : by_rate;
		if (o.latency_ns / limit * 0.95 > best)
			bad_ns += now_ns - before_ns;
	}
	return bad_ns;
}

START_TEST(test_the_depth_is_found_soon)
{
	static const double latency_ms[] = {1, 10, 100, 200, 500, 1000};

	for (unsigned i = 0; i < sizeof(latency_ms) / sizeof(double); i++)
		for (double rate = 1e6; rate < 1e12; rate *= 7) {
			uint64_t most_ns = (uint64_t)(latency_ms[i] * 20e6);
			struct formula o = {latency_ms[i] * 1e6, rate};

			if (most_ns < 2 * NS_PER_S)
				most_ns = 2 * NS_PER_S;
			ck_assert_uint_le(search_ns(o), most_ns);
		}
}
END_TEST

/* -- A trainer with a plan, and other readers ------------------------------ */

#define GOING_MAX 256
#define AHEAD_MAX 186 /* number of items for which plans have memory */

struct sent {
	uint64_t begin_ns, end_ns;
	bool foreign;
};

/*
 * An origin that takes latency_ns for each request, and answers one in
 * serve_ns. A trainer has `reads` reads in flight, in the order of its plan; a
 * read that comes before the plan has requested its item is demand. `foreign`
 * readers have one request each in flight.
 */
struct model {
	double latency_ns, serve_ns;
	unsigned reads, foreign;
	/* other readers come if there was no answer for this time */
	uint64_t late_ns;
	struct depth d;
	uint64_t now_ns, free_ns;
	struct sent sent[GOING_MAX];
	unsigned going, going_foreign;
	/* numbers of positions of the plan that were requested, that came, and
	 * that the trainer wants */
	uint64_t asked, came, wanted;
};

static void send_request(struct model *m, bool foreign)
{
	uint64_t at_ns = m->now_ns + (uint64_t)m->latency_ns;

	ck_assert_uint_lt(m->going, GOING_MAX);
	m->free_ns = (m->free_ns > at_ns ? m->free_ns : at_ns) +
		(uint64_t)m->serve_ns;
	m->sent[m->going++] = (struct sent){.begin_ns = m->now_ns,
		.end_ns = m->free_ns,
		.foreign = foreign};
	m->going_foreign += foreign;
	m->asked += !foreign;
}

static void send_reads(struct model *m)
{
	while (m->going_foreign < m->foreign)
		send_request(m, true);
	for (; m->wanted < m->came + m->reads; m->wanted++)
		if (m->wanted >= m->asked)
			send_request(m, false);
}

static void send_planned(struct model *m)
{
	while (m->going < m->d.most && m->asked < m->came + AHEAD_MAX &&
		depth_allows(&m->d, m->going, m->going - m->going_foreign))
		send_request(m, false);
}

static unsigned first_sent(const struct model *m)
{
	unsigned first = 0;

	for (unsigned i = 1; i < m->going; i++)
		if (m->sent[i].end_ns < m->sent[first].end_ns)
			first = i;
	return first;
}

static bool readers_come(const struct model *m)
{
	return m->late_ns == 0 || m->going == 0 ||
		m->sent[first_sent(m)].end_ns > m->now_ns + m->late_ns;
}

static void answer_next(struct model *m)
{
	unsigned first = first_sent(m);
	struct sent s = m->sent[first];

	m->now_ns = s.end_ns;
	depth_note(&m->d,
		&(struct depth_answer){.bytes = REQUEST_BYTES,
			.took_ns = m->now_ns - s.begin_ns,
			.now_ns = m->now_ns,
			.going = m->going,
			.more = m->asked < m->came + AHEAD_MAX});
	m->sent[first] = m->sent[--m->going];
	m->going_foreign -= s.foreign;
	m->came += !s.foreign;
	if (readers_come(m))
		send_reads(m);
	send_planned(m);
}

static void model_init(struct model *m)
{
	m->now_ns = m->free_ns = 1;
	depth_init(&m->d, MOST);
	send_reads(m);
	send_planned(m);
}

/* Run the model for `ns`. Returns the mean number of requests in flight, and
 * sets *rate to the number of positions per second. */
static double play(struct model *m, uint64_t ns, double *rate)
{
	uint64_t begin_ns = m->now_ns, came = m->came;
	double sum = 0;

	while (m->now_ns < begin_ns + ns) {
		uint64_t before_ns = m->now_ns;
		unsigned going = m->going;

		answer_next(m);
		sum += going * (double)(m->now_ns - before_ns);
	}
	*rate = (double)(m->came - came) * 1e9 / (double)(m->now_ns - begin_ns);
	return sum / (double)(m->now_ns - begin_ns);
}

static uint64_t search_time_ns(const struct model *m)
{
	uint64_t ns = (uint64_t)(20 * (m->latency_ns + m->serve_ns));

	return ns > 2 * NS_PER_S ? ns : 2 * NS_PER_S;
}

static double best_of(const struct model *m)
{
	double by_latency = MOST / (m->latency_ns + m->serve_ns);
	double by_rate = 1 / m->serve_ns;

	return 1e9 * (by_latency < by_rate ? by_latency : by_rate);
}

/* Returns the smallest number of requests in flight with almost the best rate.
 */
static double fewest(const struct model *m)
{
	double n = 0.95e-9 * best_of(m) * (m->latency_ns + m->serve_ns);

	return n > 1 ? n : 1;
}

/* Origins that are limited by rate, by latency, or by both. */
static const struct {
	double latency_ns, serve_ns;
} origins[] = {{2e5, 5.5e6}, {2e8, 1e5}, {2e8, 5.5e6}, {2e7, 5.5e6}, {5e7, 5e5},
	{5e6, 1e6}};

#define ORIGINS (sizeof(origins) / sizeof(origins[0]))

START_TEST(test_what_a_plans_reader_asks_for_itself_is_part_of_the_depth)
{
	for (unsigned i = 0; i < ORIGINS; i++)
		for (unsigned reads = 0; reads <= 16;
			reads = reads ? 2 * reads : 1) {
			struct model m = {.latency_ns = origins[i].latency_ns,
				.serve_ns = origins[i].serve_ns,
				.reads = reads};
			double most, rate, going;

			model_init(&m);
			(void)play(&m, search_time_ns(&m), &rate);
			going = play(&m, 10 * NS_PER_S, &rate);
			ck_assert_double_ge(rate, .95 * best_of(&m));
			/* Depths are powers of two, with trials between them.
			 */
			most = 2.2 * fewest(&m);
			if (most < reads * 1.15)
				most = reads * 1.15;
			ck_assert_double_le(going, most);
		}
}
END_TEST

/* On a busy machine, several answers come in a row, followed by the next reads.
 */
START_TEST(test_readers_that_are_late_do_not_hide_a_gain)
{
	for (unsigned reads = 1; reads <= 48; reads++)
		for (unsigned foreign = 0; foreign <= 16; foreign += 8) {
			struct model m = {.latency_ns = 2e8,
				.serve_ns = 1e4,
				.reads = reads,
				.foreign = foreign,
				.late_ns = NS_PER_MS};
			double rate;

			model_init(&m);
			(void)play(&m, search_time_ns(&m), &rate);
			ck_assert_double_ge(
				play(&m, 10 * NS_PER_S, &rate), .95 * MOST);
		}
}
END_TEST

START_TEST(test_other_readers_leave_one_request_to_what_is_planned)
{
	struct model m = {.latency_ns = 2e5, .serve_ns = 5.5e6, .foreign = 16};
	double rate, going;

	model_init(&m);
	(void)play(&m, search_time_ns(&m), &rate);
	going = play(&m, 10 * NS_PER_S, &rate);
	ck_assert_double_le(going, 19);
	ck_assert_double_ge(rate, best_of(&m) / 18);
}
END_TEST

START_TEST(test_other_readers_do_not_hide_a_gain)
{
	struct model m = {.latency_ns = 1e8, .serve_ns = 1e5, .foreign = 16};
	double rate;

	model_init(&m);
	(void)play(&m, search_time_ns(&m), &rate);
	ck_assert_double_ge(play(&m, 10 * NS_PER_S, &rate), .95 * MOST);
}
END_TEST

START_TEST(test_an_origin_whose_speed_changes_is_followed_soon)
{
	for (unsigned i = 0; i < ORIGINS; i++)
		for (unsigned k = 0; k < ORIGINS; k++) {
			struct model m = {.latency_ns = origins[i].latency_ns,
				.serve_ns = origins[i].serve_ns,
				.reads = 8};
			double rate;

			model_init(&m);
			(void)play(&m, 20 * NS_PER_S, &rate);
			m.latency_ns = origins[k].latency_ns;
			m.serve_ns = origins[k].serve_ns;
			(void)play(&m, search_time_ns(&m), &rate);
			(void)play(&m, 5 * NS_PER_S, &rate);
			ck_assert_double_ge(rate, .95 * best_of(&m));
		}
}
END_TEST

START_TEST(test_a_pause_of_the_origin_costs_no_more_than_it_lasts)
{
	struct model m = {.latency_ns = 2e8, .serve_ns = 1e5, .reads = 1};
	double rate;

	model_init(&m);
	(void)play(&m, 20 * NS_PER_S, &rate);
	for (unsigned i = 0; i < m.going; i++)
		m.sent[i].end_ns += 400 * NS_PER_MS;
	m.free_ns += 400 * NS_PER_MS;
	(void)play(&m, 3 * NS_PER_S, &rate);
	ck_assert_double_ge(rate, .98 * 2.6 / 3 * best_of(&m));
}
END_TEST

START_TEST(test_a_reader_that_waits_no_more_leaves_its_share_to_the_plan)
{
	for (unsigned i = 0; i < ORIGINS; i++) {
		struct model m = {.latency_ns = origins[i].latency_ns,
			.serve_ns = origins[i].serve_ns,
			.reads = 16};
		double rate;

		model_init(&m);
		(void)play(&m, 20 * NS_PER_S, &rate);
		m.reads = 0;
		(void)play(&m, search_time_ns(&m), &rate);
		(void)play(&m, 5 * NS_PER_S, &rate);
		ck_assert_double_ge(rate, .95 * best_of(&m));
	}
}
END_TEST

/* Returns the time that is lost in the first two seconds, compared with the
 * full rate. */
static double lost_s(struct formula o, unsigned first)
{
	uint64_t now_ns = 1;
	unsigned answers = 0;
	struct depth d;

	depth_init(&d, 256);
	if (first)
		depth_begin(&d, first);
	for (; now_ns < 2 * NS_PER_S; answers++)
		run(&d, o, &now_ns, 1);
	return 2 - answers * REQUEST_BYTES / o.bytes_per_s;
}

START_TEST(test_a_search_that_begins_near_its_end_loses_little)
{
	/* The latency is 20 ms, and the link takes 0.55 ms for an item. */
	struct formula o = {20e6, REQUEST_BYTES / .00055};

	ck_assert_double_lt(lost_s(o, 32), .1);
	ck_assert_double_lt(lost_s(o, 32), .3 * lost_s(o, 0));
}
END_TEST

static void answers(struct depth *d, uint64_t took_ns, size_t bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		depth_note(d,
			&(struct depth_answer){.bytes = bytes,
				.took_ns = took_ns,
				.going = 1});
}

START_TEST(test_the_least_time_of_late_follows_the_origin)
{
	struct depth d;

	depth_init(&d, MOST);
	ck_assert_uint_eq(depth_recent_ns(&d), 0);
	answers(&d, NS_PER_MS, REQUEST_BYTES, 10);
	answers(&d, 5 * NS_PER_MS, REQUEST_BYTES, 1);
	ck_assert_uint_lt(depth_recent_ns(&d), 2 * NS_PER_MS);
	answers(&d, 20 * NS_PER_MS, REQUEST_BYTES, 300);
	ck_assert_uint_gt(depth_recent_ns(&d), 19 * NS_PER_MS);
	answers(&d, NS_PER_US, 0, 1); /* one request fails */
	ck_assert_uint_gt(depth_recent_ns(&d), 19 * NS_PER_MS);
	answers(&d, 2 * NS_PER_MS, REQUEST_BYTES, 1);
	ck_assert_uint_eq(depth_recent_ns(&d), 2 * NS_PER_MS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("depth");
	TCase *t = case_of(s, "depth");

	tcase_add_test(
		t, test_an_origin_that_one_request_fills_is_asked_for_one);
	tcase_add_test(
		t, test_a_distant_origin_is_asked_for_as_much_as_it_takes);
	tcase_add_test(t, test_an_origin_that_changes_is_followed);
	tcase_add_test(t, test_the_depth_is_found_soon);
	tcase_add_test(t, test_a_search_that_begins_near_its_end_loses_little);
	tcase_add_test(t,
		test_what_a_plans_reader_asks_for_itself_is_part_of_the_depth);
	tcase_add_test(t, test_readers_that_are_late_do_not_hide_a_gain);
	tcase_add_test(
		t, test_other_readers_leave_one_request_to_what_is_planned);
	tcase_add_test(t, test_other_readers_do_not_hide_a_gain);
	tcase_add_test(t, test_an_origin_whose_speed_changes_is_followed_soon);
	tcase_add_test(
		t, test_a_pause_of_the_origin_costs_no_more_than_it_lasts);
	tcase_add_test(t,
		test_a_reader_that_waits_no_more_leaves_its_share_to_the_plan);
	tcase_add_test(t, test_an_origin_that_only_fails_has_some_depth);
	tcase_add_test(t, test_times_when_we_did_not_ask_do_not_count);
	tcase_add_test(t, test_the_least_time_of_late_follows_the_origin);
	return run_suite(s);
}
