/* SPDX-License-Identifier: MIT */
/*
 * Tests of NULL arguments: every public call refuses them with an error, and
 * none crashes.
 */
#include "loader_fixture.h"

#include "suite.h"

static void says(struct refrain_loader *l, const char *what)
{
	char want[64];

	(void)snprintf(want, sizeof(want), "%s must not be NULL", what);
	ck_assert_str_eq(refrain_message(l), want);
}

START_TEST(test_calls_without_a_loader_refuse_null)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = (void *)&c;

	ck_assert_int_eq(refrain_open(NULL, &c), -EINVAL);
	says(NULL, "out");
	ck_assert_int_eq(refrain_open(&l, NULL), -EINVAL);
	says(NULL, "config");
	ck_assert_ptr_null(l);
	ck_assert_int_eq(refrain_config_set(NULL, "batch", "1"), -EINVAL);
	says(NULL, "config");
	ck_assert_int_eq(refrain_config_set(&c, NULL, "1"), -EINVAL);
	says(NULL, "name");
	ck_assert_int_eq(refrain_config_set(&c, "batch", NULL), -EINVAL);
	says(NULL, "text");
	ck_assert_int_eq(refrain_config_member(0, NULL), -EINVAL);
	says(NULL, "out");
}
END_TEST

START_TEST(test_a_null_loader_is_refused)
{
	struct refrain_stats stats = {.size = sizeof(stats)};
	struct refrain_failure failure = {.size = sizeof(failure)};
	const struct refrain_batch *b;
	const void *base;
	char buf[REFRAIN_STATE_MAX];
	size_t bytes;

	ck_assert_int_eq(refrain_next(NULL, &b, 0), -EINVAL);
	says(NULL, "the loader");
	ck_assert_int_eq(
		refrain_next_into(NULL, buf, sizeof(buf), NULL, 0, 0), -EINVAL);
	ck_assert_int_eq(refrain_fd(NULL), -EINVAL);
	ck_assert_int_eq(refrain_save(NULL, buf, sizeof(buf)), -EINVAL);
	ck_assert_int_eq(refrain_save_at(NULL, 0, buf, sizeof(buf)), -EINVAL);
	ck_assert_int_eq(refrain_echo_log(NULL, buf, sizeof(buf)), -EINVAL);
	ck_assert_int_eq(refrain_stats_get(NULL, &stats), -EINVAL);
	ck_assert_int_eq(refrain_stats_json(NULL, buf, sizeof(buf)), -EINVAL);
	ck_assert_int_eq(refrain_memory(NULL, &base, &bytes), -EINVAL);
	ck_assert_int_eq(refrain_failure_get(NULL, &failure), -EINVAL);
}
END_TEST

START_TEST(test_questions_about_a_null_loader_have_no_answer)
{
	ck_assert_uint_eq(refrain_examples(NULL), 0);
	ck_assert_uint_eq(refrain_classes(NULL), 0);
	ck_assert_uint_eq(refrain_steps_left(NULL), 0);
	ck_assert_uint_eq(refrain_step(NULL), 0);
	ck_assert_uint_eq(refrain_epoch_end(NULL, 0), 0);
	ck_assert_ptr_null(refrain_class_name(NULL, 0, NULL));
	ck_assert_ptr_null(refrain_path(NULL, 0));
	ck_assert_ptr_null(refrain_file(NULL, 0));
	ck_assert_ptr_null(refrain_part_file(NULL, 0, 0, NULL));
	ck_assert_int_eq(refrain_fresh(NULL, 0, NULL), -EINVAL);
	ck_assert_ptr_nonnull(refrain_message(NULL));
	ck_assert_int_eq(refrain_close(NULL), 0);
	refrain_release(NULL);
}
END_TEST

START_TEST(test_a_loader_refuses_null_and_goes_on)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	const void *base;
	size_t bytes;

	ck_assert_int_eq(refrain_next(l, NULL, 0), -EINVAL);
	says(l, "out");
	ck_assert_int_eq(
		refrain_next_into(l, NULL, 1 << 30, NULL, 0, 0), -EINVAL);
	says(l, "data");
	ck_assert_int_eq(refrain_save(l, NULL, REFRAIN_STATE_MAX), -EINVAL);
	ck_assert_int_eq(
		refrain_save_at(l, 0, NULL, REFRAIN_STATE_MAX), -EINVAL);
	ck_assert_int_eq(refrain_echo_log(l, NULL, 32), -EINVAL);
	ck_assert_int_eq(refrain_stats_get(l, NULL), -EINVAL);
	ck_assert_int_eq(refrain_stats_json(l, NULL, 8192), -EINVAL);
	says(l, "buf");
	ck_assert_int_eq(refrain_memory(l, NULL, &bytes), -EINVAL);
	says(l, "base");
	ck_assert_int_eq(refrain_memory(l, &base, NULL), -EINVAL);
	says(l, "bytes");
	ck_assert_int_eq(refrain_failure_get(l, NULL), -EINVAL);
	ck_assert_ptr_nonnull(refrain_class_name(l, 0, NULL));
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	ck_assert_uint_eq(b->step, 0);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_null");
	TCase *t = case_with(s, "null", fixture_make, fixture_remove);

	tcase_add_test(t, test_calls_without_a_loader_refuse_null);
	tcase_add_test(t, test_a_null_loader_is_refused);
	tcase_add_test(t, test_questions_about_a_null_loader_have_no_answer);
	tcase_add_test(t, test_a_loader_refuses_null_and_goes_on);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
