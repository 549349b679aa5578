/* SPDX-License-Identifier: MIT */
/* Tests the network of the experiments with numbers of type double: its
 * gradients are those of its loss, its results do not depend on the number of
 * threads, and it learns. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/unit/suite.h"
#include "nn.h"

#define SIDE 16
#define CHANNELS 3
#define CLASSES 5
#define BATCH 11 /* not a multiple of the number of slices */
#define NUMBERS ((size_t)BATCH * SIDE * SIDE * CHANNELS)

static nn_real pictures[NUMBERS];
static int64_t labels[BATCH];

static struct nn *make(uint32_t side, uint32_t width, uint32_t threads)
{
	struct nn_config c = {
		.side = side,
		.channels = CHANNELS,
		.classes = CLASSES,
		.width = width,
		.batch_max = BATCH,
		.threads = threads,
		.seed = 7,
	};
	struct nn *nn;

	ck_assert_int_eq(nn_new(&nn, &c), 0);
	return nn;
}

static void make_pictures(void)
{
	unsigned state = 1;

	for (size_t i = 0; i < NUMBERS; i++) {
		state = state * 1664525 + 1013904223;
		pictures[i] = (double)(state >> 8) / (1 << 24) - 0.5;
	}
	for (int i = 0; i < BATCH; i++)
		labels[i] = i * 3 % CLASSES;
}

/* Returns the derivative of the loss by one weight, from central differences.
 */
static double difference(struct nn *nn, size_t weight, double by)
{
	nn_real *w = &nn_weights(nn)[weight], kept = *w;
	double above, below;

	*w = kept + by;
	above = nn_loss(nn, pictures, labels, BATCH);
	*w = kept - by;
	below = nn_loss(nn, pictures, labels, BATCH);
	*w = kept;
	return (above - below) / (2 * by);
}

#define ERROR_MAX 1e-4

/* Returns the error of a gradient against differences. A difference is wrong if
 * its step crosses a kink of the ReLU or of the maximum; a smaller step does
 * not cross it. So it is enough if one of the steps agrees. */
static double error_of(struct nn *nn, size_t weight, double gradient)
{
	double least = INFINITY;

	for (double by = 1e-5; by > 1e-8 && least >= ERROR_MAX; by /= 10) {
		double d = difference(nn, weight, by);
		double e = fabs(d - gradient) / (1e-3 + fabs(gradient));

		if (e < least)
			least = e;
	}
	return least;
}

START_TEST(test_each_gradient_is_the_slope_of_the_loss)
{
	struct nn *nn = make(SIDE, 2, 1);
	size_t n = nn_weight_count(nn), moved = 0;
	nn_real *g = malloc(n * sizeof(*g));
	double loss;

	ck_assert_ptr_nonnull(g);
	/* Change scales and shifts, so that they are not all 1 and 0. */
	for (size_t i = n - 60; i < n; i++)
		nn_weights(nn)[i] += 0.01 * (double)(i % 7);
	loss = nn_gradient(nn, pictures, labels, BATCH);
	memcpy(g, nn_gradients(nn), n * sizeof(*g));
	ck_assert_double_eq_tol(
		loss, nn_loss(nn, pictures, labels, BATCH), 1e-12);
	for (size_t i = 0; i < n; i++) {
		double e = error_of(nn, i, g[i]);

		ck_assert_msg(e < ERROR_MAX,
			"weight %zu of %zu: off by %g of %g", i, n, e,
			(double)g[i]);
		moved += fabs(g[i]) > 1e-6;
	}
	ck_assert_uint_gt(moved, n / 2);
	free(g);
	nn_free(nn);
}
END_TEST

START_TEST(test_threads_change_nothing)
{
	struct nn *one = make(SIDE, 4, 1), *four = make(SIDE, 4, 4);
	size_t bytes = nn_weight_count(one) * sizeof(nn_real);

	for (int i = 0; i < 20; i++) {
		(void)nn_gradient(one, pictures, labels, BATCH);
		(void)nn_gradient(four, pictures, labels, BATCH);
		nn_update(one, 0.05, 0.9, 1e-3);
		nn_update(four, 0.05, 0.9, 1e-3);
	}
	ck_assert_mem_eq(nn_weights(one), nn_weights(four), bytes);
	ck_assert_uint_eq(nn_correct(one, pictures, labels, BATCH),
		nn_correct(four, pictures, labels, BATCH));
	nn_free(one);
	nn_free(four);
}
END_TEST

START_TEST(test_a_few_pictures_are_learned_by_heart)
{
	struct nn *nn = make(SIDE, 4, 2);
	double first = nn_loss(nn, pictures, labels, BATCH);

	for (int i = 0; i < 200; i++) {
		(void)nn_gradient(nn, pictures, labels, BATCH);
		nn_update(nn, 0.05, 0.9, 0);
	}
	ck_assert_double_lt(nn_loss(nn, pictures, labels, BATCH), 0.05 * first);
	ck_assert_uint_eq(nn_correct(nn, pictures, labels, BATCH), BATCH);
	nn_free(nn);
}
END_TEST

START_TEST(test_a_call_may_have_fewer_pictures)
{
	struct nn *nn = make(SIDE, 4, 2);

	for (uint32_t n = 1; n <= BATCH; n++)
		ck_assert(isfinite(nn_gradient(nn, pictures, labels, n)));
	nn_free(nn);
}
END_TEST

START_TEST(test_nonsense_is_refused)
{
	struct nn_config good = {8, 3, 2, 4, 1, 1, 0};
	struct nn *nn;

	for (int i = 0; i < 6; i++) {
		struct nn_config c = good;

		c.side = i == 0 ? 12 : c.side;
		c.classes = i == 1 ? 1 : c.classes;
		c.width = i == 2 ? 0 : c.width;
		c.batch_max = i == 3 ? 0 : c.batch_max;
		c.threads = i == 4 ? 9 : c.threads;
		c.channels = i == 5 ? 0 : c.channels;
		ck_assert_int_eq(nn_new(&nn, &c), -EINVAL);
		ck_assert_ptr_null(nn);
	}
	ck_assert_int_eq(nn_new(&nn, &good), 0);
	nn_free(nn);
	nn_free(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("nn");
	TCase *t = case_with(s, "nn", make_pictures, NULL);

	tcase_add_test(t, test_each_gradient_is_the_slope_of_the_loss);
	tcase_add_test(t, test_threads_change_nothing);
	tcase_add_test(t, test_a_few_pictures_are_learned_by_heart);
	tcase_add_test(t, test_a_call_may_have_fewer_pictures);
	tcase_add_test(t, test_nonsense_is_refused);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
