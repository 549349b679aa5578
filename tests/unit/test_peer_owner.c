/* SPDX-License-Identifier: MIT */
/* Tests of the owners of items: hosts own equally many items, and an item gets
 * another owner only if necessary. */
#include <math.h>
#include <stdio.h>

#include "origin/peer/peer.h"
#include "suite.h"

#define ITEMS 20000u

static struct hash128 owned_item(uint64_t i)
{
	return hash128(&i, sizeof(i));
}

static void name_hosts(uint64_t *hash, size_t n)
{
	char host[32];

	for (size_t i = 0; i < n; i++) {
		snprintf(host, sizeof(host), "node%zu:11211", i);
		hash[i] = peer_host_hash(host);
	}
}

START_TEST(test_every_host_owns_its_share)
{
	static const size_t counts[] = {1, 2, 3, 8, 64};
	size_t n = counts[_i], owned[64] = {0};
	uint64_t hash[64];

	name_hosts(hash, n);
	for (uint64_t i = 0; i < ITEMS; i++)
		owned[peer_owner(hash, n, owned_item(i))]++;
	for (size_t h = 0; h < n; h++) {
		double want = (double)ITEMS / (double)n;

		/* The limit is five standard deviations and a little more. */
		ck_assert_double_le((double)owned[h], want + 5.5 * sqrt(want));
		ck_assert_double_ge((double)owned[h], want - 5.5 * sqrt(want));
	}
}
END_TEST

START_TEST(test_a_host_that_joins_takes_its_share_and_nothing_else_moves)
{
	size_t n = 2 + (size_t)_i, moved = 0;
	double share = (double)ITEMS / (double)(n + 1);
	uint64_t hash[64];

	name_hosts(hash, n + 1);
	for (uint64_t i = 0; i < ITEMS; i++) {
		size_t before = peer_owner(hash, n, owned_item(i));
		size_t after = peer_owner(hash, n + 1, owned_item(i));

		ck_assert(after == before || after == n);
		moved += after != before;
	}
	ck_assert_double_le((double)moved, share + 5.5 * sqrt(share));
	ck_assert_uint_gt(moved, 0);
}
END_TEST

START_TEST(test_a_host_that_leaves_moves_its_own_items_alone)
{
	uint64_t all[8], left[7];

	name_hosts(all, 8);
	for (size_t gone = 0; gone < 8; gone++) {
		for (size_t i = 0, k = 0; i < 8; i++)
			if (i != gone)
				left[k++] = all[i];
		for (uint64_t i = 0; i < 2000; i++) {
			size_t before = peer_owner(all, 8, owned_item(i));
			size_t after = peer_owner(left, 7, owned_item(i));

			if (before != gone)
				ck_assert_uint_eq(left[after], all[before]);
		}
	}
}
END_TEST

START_TEST(test_the_order_of_the_list_does_not_matter)
{
	uint64_t hash[5], turned[5];

	name_hosts(hash, 5);
	for (size_t i = 0; i < 5; i++)
		turned[4 - i] = hash[i];
	for (uint64_t i = 0; i < 2000; i++)
		ck_assert_uint_eq(hash[peer_owner(hash, 5, owned_item(i))],
			turned[peer_owner(turned, 5, owned_item(i))]);
}
END_TEST

/* Hosts with different releases share items, so the owner of an item must never
 * change. */
START_TEST(test_owners_are_those_of_every_release)
{
	uint64_t hash[8], sum = 0;

	name_hosts(hash, 8);
	for (uint64_t i = 0; i < 64; i++)
		sum = sum * 31 + peer_owner(hash, 8, owned_item(i));
	ck_assert_uint_eq(sum, UINT64_C(12408691100715962890));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("peer_owner");
	TCase *t = case_of(s, "owner");

	tcase_add_loop_test(t, test_every_host_owns_its_share, 0, 5);
	tcase_add_loop_test(t,
		test_a_host_that_joins_takes_its_share_and_nothing_else_moves,
		0, 4);
	tcase_add_test(t, test_a_host_that_leaves_moves_its_own_items_alone);
	tcase_add_test(t, test_the_order_of_the_list_does_not_matter);
	tcase_add_test(t, test_owners_are_those_of_every_release);
	return run_suite(s);
}
