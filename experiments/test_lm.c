/* SPDX-License-Identifier: MIT */
/* Tests the text model of the experiments with numbers of type double: its
 * gradients are those of its loss, it predicts a byte only from the bytes
 * before it, and it learns. */
#include <math.h>
#include <stdlib.h>

#include "../tests/unit/suite.h"
#include "lm.h"

#define HIDDEN 3
#define COUNT 2
#define VECTOR 16 /* weights per symbol; these are the first weights */

static uint8_t examples[COUNT * LM_BYTES];

static void make_examples(void)
{
	static const char text[] = "the quick brown fox jumps over the lazy ";

	for (size_t i = 0; i < sizeof(examples); i++)
		examples[i] = (uint8_t)text[(i * 3) % (sizeof(text) - 1)];
	examples[5] = 200; /* a byte this high counts as the last symbol */
}

static struct lm *make(uint32_t hidden)
{
	struct lm *m = lm_new(hidden, COUNT, 7);

	ck_assert_ptr_nonnull(m);
	return m;
}

static double difference(struct lm *m, size_t weight)
{
	nn_real *w = &lm_weights(m)[weight], kept = *w;
	double by = 1e-5, above, below;

	*w = kept + by;
	above = lm_loss(m, examples, COUNT);
	*w = kept - by;
	below = lm_loss(m, examples, COUNT);
	*w = kept;
	return (above - below) / (2 * by);
}

START_TEST(test_each_gradient_is_the_slope_of_the_loss)
{
	struct lm *m = make(HIDDEN);
	size_t n = lm_weight_count(m), moved = 0;
	double loss = lm_gradient(m, examples, COUNT);

	ck_assert_double_eq_tol(loss, lm_loss(m, examples, COUNT), 1e-12);
	for (size_t i = 0; i < n; i++) {
		double g = lm_gradients(m)[i], d = difference(m, i);

		ck_assert_msg(fabs(g - d) < 1e-7 + 1e-4 * fabs(g),
			"weight %zu of %zu: %g, by differences %g", i, n, g, d);
		moved += fabs(g) > 1e-9;
	}
	ck_assert_uint_gt(moved, n / 4);
	lm_free(m);
}
END_TEST

/* A byte has an effect only on the prediction of later bytes. */
START_TEST(test_the_last_byte_is_foretold_and_foretells_nothing)
{
	struct lm *m = make(HIDDEN);

	/* A symbol that is only predicted has no gradient in the table. */
	examples[LM_BYTES - 1] = 1;
	(void)lm_gradient(m, examples, 1);
	for (size_t v = 0; v < VECTOR; v++)
		ck_assert_double_eq(lm_gradients(m)[VECTOR + v], 0);
	/* A symbol of the context has a gradient. */
	examples[LM_BYTES - 2] = 1;
	(void)lm_gradient(m, examples, 1);
	ck_assert_double_ne(lm_gradients(m)[VECTOR], 0);
	lm_free(m);
}
END_TEST

START_TEST(test_a_few_lines_are_learned_by_heart)
{
	struct lm *m = make(32);
	double first = lm_loss(m, examples, COUNT);

	ck_assert_double_eq_tol(first, log(LM_SYMBOLS), 1);
	for (int i = 0; i < 300; i++) {
		(void)lm_gradient(m, examples, COUNT);
		lm_update(m, 0.3, 0.9, 0);
	}
	ck_assert_double_lt(lm_loss(m, examples, COUNT), 0.05 * first);
	lm_free(m);
	lm_free(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("lm");
	TCase *t = case_with(s, "lm", make_examples, NULL);

	tcase_add_test(t, test_each_gradient_is_the_slope_of_the_loss);
	tcase_add_test(t, test_the_last_byte_is_foretold_and_foretells_nothing);
	tcase_add_test(t, test_a_few_lines_are_learned_by_heart);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
