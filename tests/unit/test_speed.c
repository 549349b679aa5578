/* SPDX-License-Identifier: MIT */
/* Tests of how the speed of an origin is measured, with simulated answers that
 * come alone or in groups. */
#include "common/base/speed.h"
#include "suite.h"

#define DEPTH 64u
#define BYTES 112640u

struct provider {
	struct speed s;
	uint64_t now_ns, more;
};

static void answers(struct provider *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		speed_note(&s->s,
			&(struct speed_answer){
				.now_ns = s->now_ns,
				.bytes = BYTES,
				.answered = true,
				.more = --s->more,
				.depth = DEPTH,
			});
}

static void check_speed(uint64_t ns, uint64_t bytes, double byte_ns)
{
	ck_assert_uint_gt(bytes, 0);
	ck_assert_double_eq_tol((double)ns / (double)bytes / byte_ns, 1, 1e-3);
}

/* Send `queued` requests at once to a source that answers each after a latency.
 */
static void burst(struct provider *s, unsigned queued, uint64_t latency_ns)
{
	s->more += queued;
	while (s->more) {
		s->now_ns += latency_ns;
		answers(s, s->more < DEPTH ? (unsigned)s->more : DEPTH);
	}
}

START_TEST(test_answers_that_come_together_are_not_fast)
{
	const uint64_t latency_ns = 400 * NS_PER_MS;
	const double byte_ns = (double)latency_ns / DEPTH / BYTES;

	for (unsigned queued = DEPTH + 1; queued < 5 * DEPTH; queued++) {
		struct provider s = {0};

		for (unsigned i = 0; i < 3; i++) {
			burst(&s, queued, latency_ns);
			s.now_ns += 7 * latency_ns;
		}
		check_speed(s.s.full_ns, s.s.full_bytes, byte_ns);
		/* The second measurement of a burst counts for the lasting
		 * speed. */
		ck_assert_uint_eq(s.s.long_bytes > 0, queued > 2 * DEPTH);
		ck_assert_uint_eq(s.s.runs, 3);
		ck_assert(!s.s.running);
	}
}
END_TEST

START_TEST(test_as_many_as_are_asked_for_at_a_time_show_nothing)
{
	struct provider s = {0};

	for (unsigned i = 0; i < 10; i++)
		burst(&s, DEPTH, NS_PER_S);
	ck_assert_uint_eq(s.s.full_bytes, 0);
}
END_TEST

START_TEST(test_a_rate_is_what_comes)
{
	struct provider s = {.more = 400};

	for (unsigned i = 0; i < 400; i++) {
		s.now_ns += 5 * NS_PER_MS;
		answers(&s, 1);
	}
	check_speed(s.s.full_ns, s.s.full_bytes, 5. * NS_PER_MS / BYTES);
	check_speed(s.s.long_ns, s.s.long_bytes, 5. * NS_PER_MS / BYTES);
}
END_TEST

/* Parts of an answer count as bytes, but not as answers. */
START_TEST(test_parts_of_answers_count)
{
	struct provider s = {.more = 400};

	for (unsigned i = 0; i < 300; i++) {
		s.now_ns += 5 * NS_PER_MS;
		speed_note(&s.s,
			&(struct speed_answer){
				.now_ns = s.now_ns - NS_PER_MS,
				.bytes = BYTES,
				.more = s.more,
				.depth = DEPTH,
			});
		answers(&s, 1);
	}
	check_speed(s.s.full_ns, s.s.full_bytes, 2.5 * NS_PER_MS / BYTES);
}
END_TEST

START_TEST(test_what_is_dropped_is_not_waited_for)
{
	struct provider s = {.more = 2 * DEPTH};

	s.now_ns = NS_PER_S;
	answers(&s, 1);
	ck_assert(s.s.running);
	/* The other requests are no longer wanted; new ones come a minute
	 * later. */
	s.more = 0;
	speed_stop(&s.s);
	ck_assert(!s.s.running);
	s.now_ns += 60 * NS_PER_S;
	burst(&s, 2 * DEPTH, NS_PER_S);
	check_speed(s.s.full_ns, s.s.full_bytes, 1. * NS_PER_S / DEPTH / BYTES);
	/* The same must hold if some of the requests are answered. */
	s.more = 2 * DEPTH;
	answers(&s, 1);
	s.more = 2;
	answers(&s, 1);
	ck_assert(!s.s.running);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("speed");
	TCase *t = case_of(suite, "speed");

	tcase_add_test(t, test_answers_that_come_together_are_not_fast);
	tcase_add_test(t, test_as_many_as_are_asked_for_at_a_time_show_nothing);
	tcase_add_test(t, test_a_rate_is_what_comes);
	tcase_add_test(t, test_parts_of_answers_count);
	tcase_add_test(t, test_what_is_dropped_is_not_waited_for);
	return run_suite(suite);
}
