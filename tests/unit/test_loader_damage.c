/* SPDX-License-Identifier: MIT */
/*
 * Tests of a loader with files that cannot be read or decoded, and with reads
 * that hang.
 */
#include "loader_fixture.h"
#include "loader_lease.h"

#include <sched.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "suite.h"

/* Truncate an image. Each test has its own copy of the dataset. */

static void damage_cut(unsigned i)
{
	char path[256];
	struct stat st;

	image_path(path, i);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
}

static void damage_text(unsigned i, const char *text)
{
	char path[256];

	image_path(path, i);
	write_file(path, text, strlen(text));
}

/*
 * Damage ten files: 4 truncated, 3 that are not images, 2 empty, 1 too large.
 */
static void damage_some(void)
{
	for (unsigned i = 0; i < 4; i++)
		damage_cut(10 + 31 * i);
	for (unsigned i = 0; i < 3; i++)
		damage_text(17 + 40 * i, "<html>not found</html>");
	damage_text(200, "");
	damage_text(201, "");
	make_image(250, 300, 300);
}

static bool is_damaged(const char *path)
{
	static const unsigned bad[] = {
		10, 41, 72, 103, 17, 57, 97, 200, 201, 250};
	char name[256];

	for (unsigned i = 0; i < 10; i++) {
		image_path(name, bad[i]);
		if (strcmp(name + strlen(top) + 1, path) == 0)
			return true;
	}
	return false;
}

static struct refrain_config config_damaged(int policy)
{
	struct refrain_config c = config_of();

	c.policy = policy;
	c.max_pixels = 10000;
	return c;
}

START_TEST(test_substitutes_are_chosen_by_the_seed_alone)
{
	struct refrain_config c = config_damaged(REFRAIN_SUBSTITUTE);
	uint64_t substitutes[10] = {0};

	damage_some();
	c.echo = _i % 2 ? 2 : 1;
	c.echo_point = _i / 2;
	for (c.threads = 1; c.threads <= 4; c.threads *= 4) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;
		struct simple r;
		unsigned n = 0;

		simple_open(&r, &c);
		while (refrain_next(l, &b, WAIT_MS) == 1) {
			/* Label and pixels belong to the substitute, too. */
			ck_assert_uint_gt(simple_next(&r, b), 0);
			for (uint32_t i = 0; i < b->count; i++) {
				bool bad = is_damaged(
					refrain_path(l, b->indices[i]));

				ck_assert_int_eq(bad, b->status[i] < 0);
				ck_assert_int_eq(bad,
					b->indices[i] != b->substitutes[i]);
				if (!bad || b->echoes[i])
					continue;
				if (c.threads > 1)
					ck_assert_uint_eq(b->substitutes[i],
						substitutes[n]);
				substitutes[n++] = b->substitutes[i];
			}
			refrain_release(b);
		}
		ck_assert_uint_eq(n, 10);
		ck_assert_uint_eq(
			stats_of(l).substituted, 10 * (uint64_t)c.echo);
		ck_assert_uint_eq(stats_of(l).fresh, IMAGES);
		ck_assert_int_eq(refrain_close(l), 0);
		simple_close(&r);
	}
}
END_TEST

START_TEST(test_damage_is_counted_by_cause_and_described)
{
	struct refrain_config c = config_damaged(REFRAIN_ZERO_FILL);
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;
	char gone[256];
	unsigned zero = 0, enoent = 0;

	damage_some();
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.batches_ahead = 1;
	c.reads_ahead = 4;
	l = open_loader(&c);
	image_path(gone, 299);
	/* the loader has not read so far yet */
	ck_assert_int_eq(unlink(gone), 0);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			const uint8_t *at =
				(const uint8_t *)b->data + i * b->sample_bytes;

			ck_assert_uint_eq(b->substitutes[i], b->indices[i]);
			ck_assert_int_ge(b->labels[i], 0);
			if (!b->status[i])
				continue;
			for (size_t k = 0; k < b->sample_bytes; k++)
				ck_assert_uint_eq(at[k], 0);
			zero++;
			enoent += b->status[i] == -ENOENT;
		}
		refrain_release(b);
	}
	st = stats_of(l);
	ck_assert_uint_eq(zero, 11);
	ck_assert_uint_eq(enoent, 1);
	ck_assert_uint_eq(st.zero_filled, 11);
	ck_assert_uint_eq(st.errors, 11);
	ck_assert_uint_eq(st.errors_damaged, 4);
	ck_assert_uint_eq(st.errors_format, 5);
	ck_assert_uint_eq(st.errors_too_large, 1);
	ck_assert_uint_eq(st.errors_read, 1);
	ck_assert_msg(strstr(refrain_message(l), "c9/0299.jpg") &&
			strstr(refrain_message(l), "read"),
		"%s", refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* The loader fails at the batch that has the example, and in each later call,
 * with any number of threads. */
START_TEST(test_failing_loader_fails_at_the_same_batch)
{
	struct refrain_config c = config_damaged(REFRAIN_FAIL);
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_failure failure = {.size = sizeof(failure)};
	unsigned steps = 0;
	int rc;

	damage_cut(72); /* index 67 of c0, c1, ...: 60 + 7 = step 4 */
	damage_text(82, "nothing"); /* the next image in the same directory */
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.threads = 1U << _i;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		steps++;
		refrain_release(b);
	}
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_uint_eq(steps, 4);
	ck_assert_msg(strstr(refrain_message(l), "c2/0072.jpg") &&
			strstr(refrain_message(l), "decode") &&
			strstr(refrain_message(l), "step 4"),
		"%s", refrain_message(l));
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), -EBADMSG);
	/* A program can get the number of the example. */
	ck_assert_int_eq(refrain_failure_get(l, &failure), 1);
	ck_assert_int_eq(failure.error, -EBADMSG);
	ck_assert_int_eq(failure.stage, REFRAIN_STAGE_DECODE);
	ck_assert_uint_eq(failure.step, 4);
	ck_assert_ptr_nonnull(
		strstr(refrain_path(l, failure.index), "c2/0072.jpg"));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A trainer must not train on zeros with true labels unless its user asks for
 * that. */
START_TEST(test_dataset_without_a_whole_image_fails)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	for (unsigned i = 0; i < IMAGES; i++)
		damage_text(i, "");
	c.threads = 1U << _i;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), -EMEDIUMTYPE);
	ck_assert_msg(strstr(refrain_message(l), "step 0") &&
			strstr(refrain_message(l), "none of 16 substitutes"),
		"%s", refrain_message(l));
	ck_assert_uint_gt(stats_of(l).substitute_errors, 0);
	ck_assert_uint_eq(stats_of(l).zero_filled, 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_dataset_without_a_whole_image_is_zero_filled_if_asked)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;
	unsigned n = 0;

	for (unsigned i = 0; i < IMAGES; i++)
		damage_text(i, "");
	c.policy = REFRAIN_ZERO_FILL;
	c.max_damage = 1;
	c.epochs = 2;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++, n++) {
			ck_assert_int_eq(b->status[i], -EMEDIUMTYPE);
			ck_assert_uint_eq(
				refrain_crop_at(b, i)->image_width, 0);
		}
		refrain_release(b);
	}
	st = stats_of(l);
	ck_assert_uint_eq(n, 2 * IMAGES);
	ck_assert_uint_eq(st.zero_filled, 2 * IMAGES);
	ck_assert_uint_eq(st.errors, 2 * IMAGES);
	ck_assert_uint_eq(st.damaged_examples, IMAGES);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A fifth of the examples is damaged. This is checked after an epoch or 1000
 * examples. */
START_TEST(test_damage_above_its_share_fails)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned n = 0;
	int rc;

	for (unsigned i = 0; i < IMAGES / 5; i++)
		damage_text(i, "<html>");
	c.policy = _i % 2 ? REFRAIN_ZERO_FILL : REFRAIN_SUBSTITUTE;
	c.max_damage = _i / 2 ? 0.25 : 0;
	c.epochs = 2;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		n += b->count;
		refrain_release(b);
	}
	ck_assert_int_eq(rc, _i / 2 ? 0 : -EBADMSG);
	ck_assert_uint_eq(n, _i / 2 ? 2 * IMAGES : IMAGES / 16 * 16);
	if (rc < 0)
		ck_assert_msg(strstr(refrain_message(l), "max_damage") &&
				strstr(refrain_message(l), "10 %"),
			"%s", refrain_message(l));
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), rc);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A lack of descriptors must not count as damage. */
START_TEST(test_without_descriptors_the_loader_fails)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct rlimit rl, none;
	int rc, top_fd;

	c.policy = _i ? REFRAIN_ZERO_FILL : REFRAIN_SUBSTITUTE;
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.batches_ahead = 1;
	c.reads_ahead = 4;
	l = open_loader(&c);
	top_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	none = (struct rlimit){(rlim_t)top_fd + 1, rl.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (dup(top_fd) >= 0)
		;
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		for (uint32_t i = 0; i < b->count; i++)
			ck_assert_int_eq(b->status[i], 0);
		refrain_release(b);
		/* A file that was being closed makes room for one more. */
		while (dup(top_fd) >= 0)
			;
	}
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
	ck_assert_int_eq(rc, -EMFILE);
	ck_assert_msg(
		strstr(refrain_message(l), "ulimit"), "%s", refrain_message(l));
	ck_assert_uint_eq(stats_of(l).errors, 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

static int failing_augment(void *ctx, const struct refrain_decoded *in,
	uint64_t seed, void *out, size_t bytes)
{
	(void)ctx;
	(void)in;
	(void)seed;
	memset(out, 1, bytes);
	return -EDOM;
}

START_TEST(test_augmentation_that_fails_is_not_served_as_zeros)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	c.augment_fn = failing_augment;
	c.sample_bytes = 100;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), -EDOM);
	ck_assert_msg(strstr(refrain_message(l), "augment"), "%s",
		refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_restored_run_substitutes_the_same)
{
	struct refrain_config c = config_damaged(REFRAIN_SUBSTITUTE);
	struct refrain_loader *l, *m;
	const struct refrain_batch *a, *b;
	char state[REFRAIN_STATE_MAX];
	int n;

	damage_some();
	c.echo = 4;
	l = open_loader(&c);
	for (unsigned i = 0; i < 30; i++) {
		ck_assert_int_eq(refrain_next(l, &a, WAIT_MS), 1);
		refrain_release(a);
	}
	n = refrain_save(l, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	c.state = state;
	c.state_bytes = (size_t)n;
	m = open_loader(&c);
	while (refrain_next(l, &a, WAIT_MS) == 1) {
		ck_assert_int_eq(refrain_next(m, &b, WAIT_MS), 1);
		ck_assert_uint_eq(a->step, b->step);
		ck_assert(memcmp(a->data, b->data, a->data_bytes) == 0);
		ck_assert(memcmp(a->substitutes, b->substitutes,
				  a->count * sizeof(*a->substitutes)) == 0);
		ck_assert(memcmp(a->status, b->status,
				  a->count * sizeof(*a->status)) == 0);
		refrain_release(a);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_next(m, &b, WAIT_MS), 0);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(refrain_close(m), 0);
}
END_TEST

START_TEST(test_image_larger_than_the_memory_is_damage)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned bad = 0;

	make_image(123, 3000, 2000);
	c.policy = REFRAIN_ZERO_FILL;
	c.threads = 1U << _i;
	c.memory_bytes = 3 << 20;
	c.batches_ahead = 2;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			bad += b->status[i] != 0;
			if (b->status[i])
				ck_assert_int_eq(b->status[i], -E2BIG);
		}
		refrain_release(b);
	}
	ck_assert_uint_le(bad, 1);
	ck_assert_uint_eq(stats_of(l).errors_too_large, bad);
	ck_assert_uint_le(
		stats_of(l).memory_bytes_peak, c.memory_bytes * 11 / 10);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_decode_that_fails_is_damage)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;
	uint32_t record[64];
	char path[256];

	for (uint32_t i = 0; i < 64; i++)
		record[i] = i;
	(void)snprintf(path, sizeof(path), "%s/records.bin", top);
	write_file(path, record, sizeof(record));
	c.dataset = path;
	c.source = REFRAIN_SOURCE_RAW;
	c.record_bytes = 4;
	c.augment_fn = NULL;
	c.sample_bytes = 5; /* each record is shorter than before */
	c.policy = REFRAIN_ZERO_FILL;
	c.max_damage = 1;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	st = stats_of(l);
	ck_assert_uint_eq(st.errors_damaged, 64);
	ck_assert_msg(
		strstr(refrain_message(l), "5"), "%s", refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* -- Reads that hang ------------------------------------------------------- */

/* Wait until only the hanging read is left. A busy machine delays other reads,
 * too. */
static void until_it_hangs(struct refrain_loader *l)
{
	const struct refrain_batch *b;
	int rc;

	do {
		while ((rc = refrain_next(l, &b, 1000)) == 1)
			refrain_release(b);
		ck_assert_msg(
			rc == -ETIMEDOUT, "%d: %s", rc, refrain_message(l));
	} while (!strstr(refrain_message(l), "c9/0299.jpg") ||
		!strstr(refrain_message(l), "reading"));
}

/* The last image has a write lease that is never given up, so opening it hangs.
 */
START_TEST(test_read_that_hangs_is_named_and_left_behind)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_failure failure = {.size = sizeof(failure)};
	char path[256];
	uint64_t then_ns;
	int lease;

	if (_i)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io_uring", 1), 0);
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.batches_ahead = 1;
	c.reads_ahead = 4;
	l = open_loader(&c);
	image_path(path, 299);
	lease = lease_begin(path);
	until_it_hangs(l);
	ck_assert_int_eq(refrain_failure_get(l, &failure), 1);
	ck_assert_int_eq(failure.stage, REFRAIN_STAGE_READ);
	ck_assert_str_eq(refrain_path(l, failure.index), "c9/0299.jpg");
	ck_assert_int_eq(refrain_next(l, &b, 0), -ETIMEDOUT);
	/* Closing takes 0.9 s; more on a busy machine, but not without a limit.
	 */
	then_ns = clock_now_ns();
	left_behind = l;
	ck_assert_int_le(refrain_close(l), 1);
	ck_assert_uint_lt(
		clock_now_ns() - then_ns, 5 * NS_PER_S * TIME_LIMIT_FACTOR);
	lease_end(lease);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_damage");
	TCase *tc = case_with(s, "damage", fixture_make, fixture_remove);

	tcase_add_loop_test(
		tc, test_substitutes_are_chosen_by_the_seed_alone, 0, 6);
	tcase_add_test(tc, test_damage_is_counted_by_cause_and_described);
	tcase_add_loop_test(
		tc, test_failing_loader_fails_at_the_same_batch, 0, 4);
	tcase_add_loop_test(tc, test_dataset_without_a_whole_image_fails, 0, 3);
	tcase_add_test(
		tc, test_dataset_without_a_whole_image_is_zero_filled_if_asked);
	tcase_add_loop_test(tc, test_damage_above_its_share_fails, 0, 4);
	tcase_add_loop_test(
		tc, test_without_descriptors_the_loader_fails, 0, 2);
	tcase_add_test(tc, test_augmentation_that_fails_is_not_served_as_zeros);
	tcase_add_test(tc, test_restored_run_substitutes_the_same);
	tcase_add_loop_test(
		tc, test_image_larger_than_the_memory_is_damage, 0, 3);
	tcase_add_test(tc, test_decode_that_fails_is_damage);
	tcase_add_loop_test(
		tc, test_read_that_hangs_is_named_and_left_behind, 0, 2);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
