/* SPDX-License-Identifier: MIT */
/* Tests of the batches of a loader: they must equal those of the simple loader,
 * with any number of threads, any memory and any way of reading. */
#include "loader_fixture.h"
#include "suite.h"

/* Check that all batches of a run equal those of the simple loader. */
static struct refrain_stats run_against_simple(const struct refrain_config *c)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;
	struct refrain_stats st;
	struct simple r;
	int rc;

	simple_open(&r, c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		ck_assert_uint_gt(simple_next(&r, b), 0);
		refrain_release(b);
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, refrain_message(l));
	ck_assert_uint_eq(simple_next(&r, NULL), 0);
	st = stats_of(l);
	ck_assert_uint_eq(refrain_steps_left(l), 0);
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
	return st;
}

static const double factors[] = {1, 1.5, 2, 4};

START_TEST(test_loader_returns_what_a_simple_one_does)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;

	c.echo = factors[_i % 4];
	c.echo_point = _i / 4 % 3;
	c.layout = _i / 12;
	c.type = _i % 3;
	c.threads = 1U << _i % 4;
	c.epochs = 2;
	st = run_against_simple(&c);
	ck_assert_uint_eq(st.fresh, 2 * IMAGES);
	ck_assert_uint_eq(st.decodes, 2 * IMAGES);
	ck_assert_uint_eq(st.files_read, 2 * IMAGES);
	ck_assert_uint_eq(st.redecodes + st.rereads + st.errors, 0);
	ck_assert_uint_eq(st.epochs, 2);
	ck_assert_uint_eq(st.in_batch_duplicates, 0);
	ck_assert_uint_le(st.memory_bytes_peak, c.memory_bytes);
}
END_TEST

/* The number of threads changes neither the stream nor the pixels. */
START_TEST(test_loader_is_the_same_at_any_number_of_threads)
{
	struct refrain_config c = config_of();
	uint64_t hash = 0;

	c.echo = 2;
	c.echo_point = _i;
	for (c.threads = 1; c.threads <= 8; c.threads *= 2) {
		struct refrain_stats st = run_against_simple(&c);

		if (c.threads > 1)
			ck_assert_uint_eq(st.stream_hash, hash);
		hash = st.stream_hash;
	}
}
END_TEST

/* The minimum of memory that refrain_open() requires. */
static uint64_t least_memory(struct refrain_config c)
{
	struct refrain_loader *l;
	const char *at;

	c.memory_bytes = 1;
	ck_assert_int_eq(refrain_open(&l, &c), -ENOMEM);
	at = strstr(refrain_message(NULL), " need ");
	ck_assert_ptr_nonnull(at);
	return strtoull(at + 6, NULL, 10);
}

START_TEST(test_loader_with_little_memory_decodes_again_the_same)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;

	c.echo = factors[_i % 4];
	c.echo_point = _i / 4;
	c.window = 256;
	c.threads = 4;
	c.memory_bytes = least_memory(c) + (128 << 10);
	st = run_against_simple(&c);
	if (c.echo > 1)
		ck_assert_uint_gt(st.redecodes, 0);
	ck_assert_uint_le(st.memory_bytes_peak, c.memory_bytes * 11 / 10);
}
END_TEST

START_TEST(test_loader_with_the_least_memory_reads_again_the_same)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;

	c.echo = 4;
	c.window = 256;
	c.threads = 1U << _i;
	c.memory_bytes = least_memory(c);
	st = run_against_simple(&c);
	ck_assert_uint_gt(st.redecodes, 0);
	ck_assert_uint_gt(st.rereads, 0);
}
END_TEST

START_TEST(test_loader_with_the_least_memory_hardly_reads_again)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;

	c.threads = 1U << _i % 4;
	c.epochs = 2;
	c.batch = _i < 4 ? 16 : 64;
	c.memory_bytes = least_memory(c);
	st = run_against_simple(&c);
	/* An image that needs most of the memory may push out a few files. */
	ck_assert_uint_le(st.rereads, 2 * IMAGES / 100);
	ck_assert_uint_eq(st.files_read, 2 * IMAGES + st.rereads);
}
END_TEST

START_TEST(test_loader_reads_no_file_again_with_the_memory_it_wants)
{
	struct refrain_config c = config_of();
	uint64_t rereads;
	struct refrain_stats st;

	c.echo = 2 << _i;
	c.window = 256;
	c.memory_bytes = least_memory(c);
	st = run_against_simple(&c);
	rereads = st.rereads;
	ck_assert_uint_gt(rereads, 0);
	ck_assert_uint_gt(st.memory_wanted_bytes, c.memory_bytes);
	c.memory_bytes = st.memory_wanted_bytes;
	st = run_against_simple(&c);
	ck_assert_uint_le(st.rereads, rereads / 50);
}
END_TEST

START_TEST(test_loader_without_io_uring_is_the_same)
{
	struct refrain_config c = config_of();

	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io_uring", 1), 0);
	c.echo = 2;
	(void)run_against_simple(&c);
	ck_assert_int_eq(unsetenv("REFRAIN_DISABLE"), 0);
}
END_TEST

START_TEST(test_loader_evaluates_in_order)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;

	c.augment = REFRAIN_AUGMENT_EVAL;
	c.flags = REFRAIN_FLAG_IN_ORDER;
	st = run_against_simple(&c);
	ck_assert_uint_eq(st.fresh, IMAGES);
	ck_assert_double_eq(st.echo_factor, 1);
}
END_TEST

START_TEST(test_loader_takes_each_example_fresh_once_an_epoch)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned seen[IMAGES] = {0}, ends = 0;

	c.echo = 2.5;
	c.epochs = 3;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++)
			seen[b->indices[i]] += b->echoes[i] == 0;
		ends += b->ends_epoch;
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(l), 0);
	for (unsigned i = 0; i < IMAGES; i++)
		ck_assert_uint_eq(seen[i], 3);
	ck_assert_uint_eq(ends, 3);
}
END_TEST

/* -- Records and callbacks ------------------------------------------------- */

#define RECORD 24

static void make_records(char path[256], unsigned n)
{
	uint8_t bytes[256 * RECORD];

	for (unsigned i = 0; i < n * RECORD; i++)
		bytes[i] = (uint8_t)(i / RECORD + 3 * (i % RECORD));
	for (unsigned i = 0; i < n; i++)
		bytes[i * RECORD] = (uint8_t)(i % 5);
	(void)snprintf(path, 256, "%s/records.bin", top);
	write_file(path, bytes, n * RECORD);
}

static struct refrain_config config_of_records(const char *path)
{
	struct refrain_config c = config_of();

	c.dataset = path;
	c.source = REFRAIN_SOURCE_RAW;
	c.record_bytes = RECORD;
	c.label_bytes = 1;
	return c;
}

START_TEST(test_loader_copies_raw_records)
{
	char path[256];
	struct refrain_config c;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned n = 0;

	make_records(path, 200);
	c = config_of_records(path);
	c.echo = 3;
	c.echo_point = _i;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_eq(b->ndim, 2);
		ck_assert_uint_eq(b->sample_bytes, RECORD - 1);
		for (uint32_t i = 0; i < b->count; i++, n++) {
			const uint8_t *at =
				(const uint8_t *)b->data + i * b->sample_bytes;

			for (unsigned k = 1; k < RECORD; k++)
				ck_assert_uint_eq(at[k - 1],
					(uint8_t)(b->indices[i] + 3 * k));
			ck_assert_int_eq(
				b->labels[i], (int64_t)(b->indices[i] % 5));
			ck_assert_int_eq(b->status[i], 0);
		}
		refrain_release(b);
	}
	ck_assert_uint_eq(n, 600);
	ck_assert_uint_eq(stats_of(l).files_read, 200);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A decode() that makes an image of one colour, which the second byte of the
 * record gives. */
static int decode_colour(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	const uint8_t *bytes = in->data;

	(void)ctx;
	ck_assert(in->size == sizeof(*in) && out->size == sizeof(*out));
	ck_assert_str_eq(in->field, "image");
	ck_assert(!out->type && !out->ndim);
	out->width = 40;
	out->height = 36;
	out->channels = 3;
	out->bytes = 40 * 36 * 3;
	memset(out->data, bytes[1], out->bytes);
	return 0;
}

START_TEST(test_loader_augments_what_a_callback_decodes)
{
	char path[256];
	struct refrain_config c;
	struct refrain_loader *l;
	const struct refrain_batch *b;

	make_records(path, 100);
	c = config_of_records(path);
	c.decode = decode_colour;
	c.decoded_max_bytes = 40 * 36 * 3;
	c.echo = 2;
	c.echo_point = _i;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_eq(b->ndim, 4);
		for (uint32_t i = 0; i < b->count; i++)
			for (size_t k = 0; k < b->sample_bytes; k++)
				ck_assert_uint_eq(
					((const uint8_t *)b->data)[i *
							b->sample_bytes +
						k],
					(uint8_t)(b->indices[i] + 6));
		refrain_release(b);
	}
	ck_assert_uint_eq(stats_of(l).decodes, 100);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A decode() that returns values of a type that this version does not support.
 */
static int decode_floats(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	int rc = decode_colour(ctx, in, out);

	out->type = REFRAIN_F32;
	return rc;
}

START_TEST(test_loader_refuses_values_that_are_not_bytes)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	c.decode = decode_floats;
	c.decoded_max_bytes = 40 * 36 * 3;
	c.policy = REFRAIN_FAIL;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), -EBADMSG);
	ck_assert_ptr_nonnull(
		strstr(refrain_message(l), "decode() returned type 2"));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* An augment_fn() that writes the seed and the first byte. */
static int take_seed(void *ctx, const struct refrain_decoded *in, uint64_t seed,
	void *out, size_t sample_bytes)
{
	(void)ctx;
	ck_assert_uint_eq(sample_bytes, 16);
	ck_assert_uint_eq(in->size, sizeof(*in));
	memset(out, 0, 16);
	memcpy(out, &seed, sizeof(seed));
	memcpy((char *)out + 8, in->data, 1);
	return in->width ? 0 : -EINVAL;
}

START_TEST(test_loader_lets_a_callback_augment)
{
	static const struct settings none; /* settings without fields */
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	c.augment_fn = take_seed;
	c.sample_bytes = 16;
	c.echo = 2;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_eq(b->ndim, 2);
		expect_columns(&none, b);
		for (uint32_t i = 0; i < b->count; i++)
			ck_assert(memcmp((const char *)b->data + i * 16,
					  &b->seeds[i], 8) == 0);
		refrain_release(b);
	}
	ck_assert_uint_eq(stats_of(l).decodes, IMAGES);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* Check that the memory has room for enough planned examples; otherwise a
 * change would take effect only after the next change is due. The memory must
 * also have room for some bursts, unless as many examples as in a burst are
 * read at a time anyway. */
static void has_room(const struct refrain_config *c)
{
	struct schedule_config config;
	struct settings s;
	struct error err;

	ck_assert_msg(settings_init(&s, c, &err) == 0, "%s", err.msg);
	settings_schedule(&s, 1000, NULL, &config);
	ck_assert_uint_eq(s.ahead_least, 3 * c->reads_ahead);
	ck_assert_uint_ge(s.ahead_max, s.ahead_least);
	ck_assert_uint_ge(
		config.window, (c->batches_ahead + 4) * c->batch + 16);
	ck_assert(s.ahead_max == s.ahead_least ||
		s.ahead_max - c->reads_ahead <= config.window * 3 / 8);
}

START_TEST(test_a_window_that_follows_has_room_for_what_is_planned)
{
	static const uint32_t ahead[] = {1, 8, 42, 43, 64, 4096};

	for (unsigned i = 0; i < 36; i++) {
		struct refrain_config c = config_of();

		c.echo = REFRAIN_ECHO_AUTO;
		c.reads_ahead = ahead[i % 6];
		c.batches_ahead = ahead[i / 6];
		c.batch = 4;
		c.window = 0;
		has_room(&c);
		c.window = (c.batches_ahead + 4) * c.batch + 3 * c.reads_ahead +
			16;
		for (unsigned more = 0; more < 150; more++, c.window++)
			has_room(&c);
	}
}
END_TEST

/* With some seeds the end of a run has duplicates. They must all be at the
 * allowed positions. */
START_TEST(test_duplicates_are_those_at_the_end_of_a_run)
{
	struct refrain_config c = config_of();
	uint64_t pairs = 0;

	c.height = 8;
	c.echo = 2.5;
	c.batch = 24;
	c.window = 120; /* the smallest window */
	for (c.seed = 0; c.seed < 6; c.seed++) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;
		struct refrain_stats st;

		while (refrain_next(l, &b, WAIT_MS) == 1)
			refrain_release(b);
		st = stats_of(l);
		ck_assert_uint_eq(st.in_batch_duplicates, st.end_duplicates);
		pairs += st.end_duplicates;
		ck_assert_int_eq(refrain_close(l), 0);
	}
	ck_assert_uint_gt(pairs, 0);
}
END_TEST

START_TEST(test_duplicates_of_a_small_window_are_anywhere)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;

	c.echo = 2.5;
	c.window = 20;
	c.flags = REFRAIN_FLAG_ALLOW_DUPLICATES;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	st = stats_of(l);
	ck_assert_uint_gt(st.in_batch_duplicates, 0);
	ck_assert_uint_eq(st.end_duplicates, 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader");
	TCase *tc = case_of(s, "batches");

	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_loop_test(
		tc, test_loader_returns_what_a_simple_one_does, 0, 24);
	tcase_add_loop_test(
		tc, test_loader_is_the_same_at_any_number_of_threads, 0, 3);
	tcase_add_loop_test(tc,
		test_loader_with_little_memory_decodes_again_the_same, 0, 12);
	tcase_add_loop_test(tc,
		test_loader_with_the_least_memory_reads_again_the_same, 0, 4);
	tcase_add_loop_test(
		tc, test_loader_with_the_least_memory_hardly_reads_again, 0, 8);
	tcase_add_loop_test(tc,
		test_loader_reads_no_file_again_with_the_memory_it_wants, 0, 2);
	tcase_add_test(tc, test_loader_without_io_uring_is_the_same);
	tcase_add_test(tc, test_loader_evaluates_in_order);
	tcase_add_test(tc, test_loader_takes_each_example_fresh_once_an_epoch);
	tcase_add_test(
		tc, test_a_window_that_follows_has_room_for_what_is_planned);
	tcase_add_test(tc, test_duplicates_are_those_at_the_end_of_a_run);
	tcase_add_test(tc, test_duplicates_of_a_small_window_are_anywhere);
	tc = case_of(s, "callbacks");
	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_loop_test(tc, test_loader_copies_raw_records, 0, 3);
	tcase_add_loop_test(
		tc, test_loader_augments_what_a_callback_decodes, 0, 3);
	tcase_add_test(tc, test_loader_refuses_values_that_are_not_bytes);
	tcase_add_test(tc, test_loader_lets_a_callback_augment);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
