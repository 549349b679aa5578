/* SPDX-License-Identifier: MIT */
/* Tests of the positions of files in a plan. */
#include <errno.h>

#include "mount/plan/plan_order_impl.h"
#include "suite.h"

START_TEST(test_an_order_finds_where_a_file_comes_next)
{
	const uint32_t n = 5000;
	struct order o = {.cap = 0};
	uint64_t pos;

	for (uint32_t e = 0; e < 3; e++)
		for (uint32_t i = 0; i < n; i++)
			ck_assert_int_eq(
				order_add(&o, e, (i * 7 + e) % n, 0), 0);
	ck_assert_int_eq(order_add(&o, 2, 5, 0), -EEXIST);
	for (uint32_t e = 0; e < 3; e++)
		for (uint32_t i = 0; i < n; i++) {
			uint32_t file = (i * 7 + e) % n;

			ck_assert(order_find(&o, file, 0, &pos));
			ck_assert_uint_eq(pos, (uint64_t)e * n + i);
			ck_assert_uint_eq(order_epoch_at(&o, pos).number, e);
			order_set(&o, pos, ORDER_SERVED);
		}
	ck_assert(!order_find(&o, 5, 0, &pos));
	ck_assert(!order_find(&o, n + 5, 0, &pos));
	order_release(&o);
}
END_TEST

START_TEST(test_an_order_that_is_extended_for_ever_stays_small)
{
	const uint32_t n = 1000;
	struct order o = {.cap = 0};
	uint64_t done = 0, pos;
	bool right = true;

	for (uint32_t e = 0; e < 2000; e++) {
		for (uint32_t i = 0; i < n; i++)
			right &= order_add(&o, e, i, done) == 0;
		if (e == 0)
			continue;
		/* This reader is one epoch behind. */
		for (uint32_t i = 0; i < n; i++) {
			right &= order_find(&o, i, 0, &pos) && pos == done;
			order_set(&o, done++, ORDER_SERVED);
		}
	}
	ck_assert(right);
	ck_assert_uint_le(o.cap, 8 * n);
	ck_assert_uint_le(o.epochs, 8);
	order_release(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("order");
	TCase *t = case_of(s, "order");

	tcase_add_test(t, test_an_order_finds_where_a_file_comes_next);
	tcase_add_test(t, test_an_order_that_is_extended_for_ever_stays_small);
	return run_suite(s);
}
