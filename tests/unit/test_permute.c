/* SPDX-License-Identifier: MIT */
/* The keyed permutation: a bijection with an inverse, and evenly spread. */
#include <stdlib.h>

#include "common/schedule/permute.h"
#include "suite.h"

/* Returns the next value of a sequence of test inputs, which is independent of
 * the permutation. */
static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return *state >> 11;
}

static void expect_bijection(uint64_t n, uint64_t key)
{
	unsigned char *seen = calloc(n, 1);
	struct permute p;

	ck_assert(seen);
	permute_init(&p, n, key);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = permute_at(&p, i);

		ck_assert_uint_lt(x, n);
		ck_assert_msg(!seen[x], "n %ju: %ju twice", n, x);
		seen[x] = 1;
		ck_assert_uint_eq(permute_find(&p, x), i);
	}
	free(seen);
}

START_TEST(test_every_small_size_is_permuted_with_its_inverse)
{
	for (uint64_t n = 1; n <= 600; n++)
		expect_bijection(n, n * 7919);
	expect_bijection(65536, 1);
	expect_bijection(65537, 2);
	expect_bijection(300007, 3);
}
END_TEST

START_TEST(test_huge_sizes_stay_inside_and_come_back)
{
	uint64_t state = 5;

	for (int t = 0; t < 20000; t++) {
		unsigned bits = 20 + (unsigned)(next(&state) % 43);
		uint64_t n = (UINT64_C(1) << bits) + next(&state) % 1000;
		uint64_t i, x;
		struct permute p;

		n = t % 10 == 0 ? PERMUTE_MAX - next(&state) % 3 : n;
		i = (next(&state) << 11 ^ next(&state)) % n;
		permute_init(&p, n, next(&state));
		x = permute_at(&p, i);
		ck_assert_uint_lt(x, n);
		ck_assert_uint_eq(permute_find(&p, x), i);
	}
}
END_TEST

/* Returns the chi-square of counts, compared with an even distribution. */
static double chi2(const unsigned *count, unsigned cells, double expected)
{
	double sum = 0;

	for (unsigned i = 0; i < cells; i++) {
		double d = count[i] - expected;

		sum += d * d / expected;
	}
	return sum;
}

/* Check that chi-square is within 5 standard deviations of its mean. The mean
 * is df, and the variance 2 df. */
static void expect_even(const unsigned *count, unsigned cells, double expected)
{
	double df = cells - 1, d = chi2(count, cells, expected) - df;

	ck_assert_msg(
		d * d < 25 * 2 * df + 200, "chi-square %f of %f", d + df, df);
}

START_TEST(test_each_position_goes_everywhere_equally_often)
{
	enum { KEYS = 40000, N = 97, CELLS = 97 };
	static const unsigned places[] = {0, 1, 50, 95, 96};

	for (unsigned w = 0; w < 5; w++) {
		unsigned count[CELLS] = {0};

		for (uint64_t key = 0; key < KEYS; key++) {
			struct permute p;

			permute_init(&p, N, key);
			count[permute_at(&p, places[w])]++;
		}
		expect_even(count, CELLS, (double)KEYS / CELLS);
	}
}
END_TEST

START_TEST(test_all_orders_of_a_tiny_set_are_equally_frequent)
{
	enum { KEYS = 48000 };

	for (unsigned n = 3; n <= 5; n++) {
		unsigned cells = n == 3 ? 6 : n == 4 ? 24 : 120;
		unsigned count[3125] = {0}, orders[120], found = 0;

		for (uint64_t key = 0; key < KEYS; key++) {
			unsigned word = 0;
			struct permute p;

			permute_init(&p, n, key);
			for (unsigned i = 0; i < n; i++)
				word = word * n + (unsigned)permute_at(&p, i);
			count[word]++;
		}
		for (unsigned i = 0; i < 3125; i++)
			if (count[i])
				orders[found++ % 120] = count[i];
		ck_assert_uint_eq(found, cells);
		expect_even(orders, cells, (double)KEYS / cells);
	}
}
END_TEST

/* Neighbours must be separated: their new distance must be that of a random
 * pair. */
START_TEST(test_neighbours_go_to_unrelated_places)
{
	enum { N = 100003, CELLS = 64, STEPS = 3 };
	static const uint64_t apart[STEPS] = {1, 2, 256};

	for (unsigned s = 0; s < STEPS; s++) {
		unsigned count[CELLS] = {0}, adjacent = 0;
		struct permute p;

		permute_init(&p, N, 12345 + s);
		for (uint64_t i = 0; i + apart[s] < N; i++) {
			uint64_t a = permute_at(&p, i);
			uint64_t b = permute_at(&p, i + apart[s]);
			uint64_t d = (b + N - a) % N;

			count[(d - 1) * CELLS / (N - 1)]++;
			adjacent += d == 1;
		}
		expect_even(count, CELLS, (double)(N - apart[s]) / CELLS);
		/* A Poisson distribution with mean 1 exceeds 8 once in a
		 * million times. */
		ck_assert_uint_le(adjacent, 8);
	}
}
END_TEST

/* Saved streams depend on these values. */
START_TEST(test_values_are_those_of_every_release)
{
	static const uint64_t sizes[] = {10, 1281167, PERMUTE_MAX};
	static const uint64_t expected[] = {
		7, 1252938, UINT64_C(5883430400695636926)};

	for (unsigned i = 0; i < 3; i++) {
		struct permute p;

		permute_init(&p, sizes[i], 42);
		ck_assert_uint_eq(permute_at(&p, 7), expected[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("permute");
	TCase *t = case_of(s, "permute");

	tcase_add_test(t, test_every_small_size_is_permuted_with_its_inverse);
	tcase_add_test(t, test_huge_sizes_stay_inside_and_come_back);
	tcase_add_test(t, test_each_position_goes_everywhere_equally_often);
	tcase_add_test(t, test_all_orders_of_a_tiny_set_are_equally_frequent);
	tcase_add_test(t, test_neighbours_go_to_unrelated_places);
	tcase_add_test(t, test_values_are_those_of_every_release);
	return run_suite(s);
}
