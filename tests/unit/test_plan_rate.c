/* SPDX-License-Identifier: MIT */
/* How fast a plan is fetched: a source whose answers are only simulated. */
#include <stdlib.h>

#include "base/clock.h"
#include "prefetch/plan_impl.h"
#include "suite.h"

#define DEPTH 64u
#define BYTES 112640u
#define LOOK_NS (20 * NS_PER_MS)

struct bunched {
	struct plan *plan;
	uint64_t now_ns;
};

static void source_start(struct bunched *s, uint64_t begin_ns)
{
	s->plan = calloc(1, sizeof(*s->plan));
	ck_assert_ptr_nonnull(s->plan);
	s->now_ns = begin_ns;
	atomic_store(&s->plan->pace.depth, DEPTH);
}

static void look_until(struct bunched *s, uint64_t until_ns)
{
	while (s->now_ns + LOOK_NS <= until_ns) {
		s->now_ns += LOOK_NS;
		rate_look(s->plan, s->now_ns);
	}
}

static void answer(struct bunched *s, unsigned n)
{
	atomic_fetch_add(&s->plan->pace.came_bytes, (uint64_t)n * BYTES);
	atomic_fetch_add(&s->plan->pace.answers, n);
}

static void ask(struct bunched *s, uint64_t requests)
{
	atomic_store(&s->plan->pace.requests, requests);
	rate_look(s->plan, s->now_ns);
}

static void check_rates(const struct bunched *s, double byte_s)
{
	const struct plan_rates *r = &s->plan->rate.sum;

	if (r->full_ns)
		ck_assert_double_eq_tol((double)r->full_bytes / byte_s,
			(double)r->full_ns / NS_PER_S,
			.1 * (double)r->full_ns / NS_PER_S);
	if (r->long_ns)
		ck_assert_double_eq_tol((double)r->long_bytes / byte_s,
			(double)r->long_ns / NS_PER_S,
			.1 * (double)r->long_ns / NS_PER_S);
}

/*
 * All that is asked for comes at a time, some milliseconds apart, and runs are
 * short: what came at once must not be taken for fast. `begin_ns`: when it was
 * looked first, within a latency.
 */
static void distant(uint64_t latency_ns, unsigned rounds, uint64_t begin_ns)
{
	struct bunched s;

	source_start(&s, begin_ns);
	for (unsigned run = 0; run < 8; run++) {
		ask(&s, 3 * DEPTH);
		for (unsigned i = 0; i < rounds; i++) {
			uint64_t at = s.now_ns - s.now_ns % latency_ns;

			for (unsigned part = 0; part < 8; part++) {
				uint64_t ns =
					at + latency_ns + part * 2 * NS_PER_MS;

				look_until(&s, ns);
				answer(&s, DEPTH / 8);
				if (part % 3 == 1)
					rate_look(s.plan, ns);
				s.now_ns = ns;
			}
		}
		ask(&s, DEPTH / 2);
	}
	check_rates(&s, DEPTH * BYTES / ((double)latency_ns / NS_PER_S));
	ck_assert(rounds < 5 || s.plan->rate.sum.long_ns > 0);
	free(s.plan);
}

START_TEST(test_answers_that_come_together_are_not_fast)
{
	for (unsigned rounds = 1; rounds < 8; rounds++)
		for (uint64_t begin = 0; begin < 400; begin += 7)
			distant(400 * NS_PER_MS, rounds, begin * NS_PER_MS);
}
END_TEST

START_TEST(test_a_rate_is_what_comes)
{
	struct bunched s;

	source_start(&s, 0);
	ask(&s, 3 * DEPTH);
	for (unsigned i = 0; i < 400; i++) {
		look_until(&s, i * 5 * NS_PER_MS);
		answer(&s, 1);
	}
	check_rates(&s, BYTES / .005);
	ck_assert_uint_gt(s.plan->rate.sum.long_ns, NS_PER_S);
	free(s.plan);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan_rate");
	TCase *t = case_of(suite, "plan_rate");

	tcase_add_test(t, test_answers_that_come_together_are_not_fast);
	tcase_add_test(t, test_a_rate_is_what_comes);
	return run_suite(suite);
}
