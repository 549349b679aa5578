/* SPDX-License-Identifier: MIT */
/* Tests of src/origin/peer/peer_trust_impl.h: when the units of a writer are
 * used. */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "origin/peer/peer_trust_impl.h"
#include "suite.h"

#define START_NS (1000 * NS_PER_S)
#define OTHER UINT64_C(12345)

/* Comparisons that were requested and have not ended yet. */
static struct peers_check *asked[64];
static unsigned nasked;
static struct counters counters;
static struct trusts *t;

static void note_check(void *arg, struct peers_check *c)
{
	(void)arg;
	ck_assert_uint_lt(nasked, 64);
	asked[nasked++] = c;
}

static void setup(void)
{
	struct peers_config config = {
		.check = note_check, .counters = &counters};
	struct error err;

	nasked = 0;
	memset(&counters, 0, sizeof(counters));
	t = trusts_new(&config, NULL, START_NS, &err);
	ck_assert_ptr_nonnull(t);
}

static void teardown(void)
{
	trusts_free(t);
}

/* Ask whether unit `n` of a writer may be used. */
static enum trust unit_at(uint64_t writer, uint32_t n, uint64_t now_ns)
{
	static const char content[100];
	struct provider_item item = {.path = "f", .size = 100 * UNIT_BYTES};
	struct unit u = {{1, 2}, n, sizeof(content), writer};

	return trusts_unit(t, &u, &item, content, now_ns);
}

static void answer_all(int result)
{
	unsigned n = nasked;

	nasked = 0;
	for (unsigned i = 0; i < n; i++) {
		asked[i]->result = result;
		trusts_checked(t, asked[i], START_NS);
	}
}

static void prove(uint64_t writer)
{
	for (uint32_t n = 0; n < TRUST_UNITS; n++)
		ck_assert_int_eq(unit_at(writer, n, START_NS), TRUST_LATER);
	answer_all(1);
}

START_TEST(test_a_writer_is_trusted_after_some_units_were_the_same)
{
	for (uint32_t n = 0; n < TRUST_UNITS; n++) {
		ck_assert_int_eq(unit_at(OTHER, n, START_NS), TRUST_LATER);
		ck_assert_uint_eq(nasked, 1);
		answer_all(1);
		/* This unit was compared itself. */
		ck_assert_int_eq(unit_at(OTHER, n, START_NS), TRUST_YES);
		ck_assert_uint_eq(nasked, 0);
	}
	ck_assert_int_eq(unit_at(OTHER, 50, START_NS), TRUST_YES);
	ck_assert_uint_eq(nasked, 0);
	ck_assert_uint_eq(counters.peer_checks, TRUST_UNITS);
	ck_assert_uint_eq(counters.peer_check_bytes, TRUST_UNITS * 100);
}
END_TEST

START_TEST(test_no_more_units_are_compared_at_a_time_than_needed)
{
	unsigned news = trusts_news(t, OTHER);

	for (uint32_t n = 0; n < 50; n++)
		ck_assert_int_eq(unit_at(OTHER, n, START_NS), TRUST_LATER);
	ck_assert_uint_eq(nasked, TRUST_UNITS);
	ck_assert_uint_eq(trusts_news(t, OTHER), news);
	answer_all(1);
	ck_assert_uint_ne(trusts_news(t, OTHER), news);
}
END_TEST

START_TEST(test_a_unit_is_not_compared_twice)
{
	ck_assert_int_eq(unit_at(OTHER, 3, START_NS), TRUST_LATER);
	ck_assert_int_eq(unit_at(OTHER, 3, START_NS), TRUST_LATER);
	ck_assert_uint_eq(nasked, 1);
	answer_all(1);
}
END_TEST

START_TEST(test_one_difference_is_enough)
{
	ck_assert_int_eq(unit_at(OTHER, 0, START_NS), TRUST_LATER);
	ck_assert_int_eq(unit_at(OTHER, 1, START_NS), TRUST_LATER);
	answer_all(0);
	for (uint32_t n = 0; n < 8; n++)
		ck_assert_int_eq(unit_at(OTHER, n, START_NS), TRUST_NO);
	ck_assert_uint_eq(nasked, 0);
	ck_assert(trusts_any_foreign(t));
	ck_assert(trusts_differ(t));
	ck_assert(!trusts_may_push(t));
}
END_TEST

START_TEST(test_writers_of_this_dataset_are_used_beside_one_of_another)
{
	unsigned reads = 0;

	ck_assert_int_eq(unit_at(OTHER, 0, START_NS), TRUST_LATER);
	answer_all(0);
	for (unsigned i = 0; i < 640; i++)
		reads += trusts_may_read(t);
	ck_assert_uint_eq(reads, 10);
	prove(OTHER + 1);
	ck_assert(!trusts_differ(t));
	ck_assert(trusts_may_push(t));
	ck_assert(trusts_may_read(t));
	ck_assert_int_eq(unit_at(OTHER + 1, 50, START_NS), TRUST_YES);
	ck_assert_int_eq(unit_at(OTHER, 50, START_NS), TRUST_NO);
}
END_TEST

START_TEST(test_an_origin_that_fails_confirms_nothing)
{
	ck_assert_int_eq(unit_at(OTHER, 0, START_NS), TRUST_LATER);
	answer_all(-EIO);
	ck_assert_int_eq(unit_at(OTHER, 0, START_NS), TRUST_LATER);
	ck_assert_uint_eq(nasked, 0); /* no comparison is requested at once */
	ck_assert_int_eq(unit_at(OTHER, 0, START_NS + NS_PER_S), TRUST_LATER);
	ck_assert_uint_eq(nasked, 1);
	ck_assert(!trusts_differ(t));
	ck_assert_uint_eq(counters.peer_checks, 0);
	answer_all(1);
}
END_TEST

static const struct {
	bool own;
} later[] = {{false}, {true}};

START_TEST(test_a_unit_is_compared_now_and_then_for_ever)
{
	uint64_t writer = later[_i].own ? trusts_own(t) : OTHER;
	uint64_t now_ns = START_NS + TRUST_AGAIN_NS - 1;

	if (!later[_i].own)
		prove(OTHER);
	ck_assert_int_eq(unit_at(writer, 50, now_ns), TRUST_YES);
	ck_assert_uint_eq(nasked, 0);
	now_ns++;
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(unit_at(writer, 50, now_ns), TRUST_YES);
	ck_assert_uint_eq(nasked, 1);
	answer_all(1);
	now_ns += TRUST_AGAIN_NS;
	ck_assert_int_eq(unit_at(writer, 50, now_ns), TRUST_YES);
	ck_assert_uint_eq(nasked, 1);
	answer_all(0);
	ck_assert_int_eq(unit_at(writer, 50, now_ns), TRUST_NO);
	ck_assert(!trusts_may_push(t));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trust");
	TCase *c = case_with(s, "trust", setup, teardown);

	tcase_add_test(
		c, test_a_writer_is_trusted_after_some_units_were_the_same);
	tcase_add_test(
		c, test_no_more_units_are_compared_at_a_time_than_needed);
	tcase_add_test(c, test_a_unit_is_not_compared_twice);
	tcase_add_test(c, test_one_difference_is_enough);
	tcase_add_test(
		c, test_writers_of_this_dataset_are_used_beside_one_of_another);
	tcase_add_test(c, test_an_origin_that_fails_confirms_nothing);
	tcase_add_loop_test(
		c, test_a_unit_is_compared_now_and_then_for_ever, 0, 2);
	return run_suite(s);
}
