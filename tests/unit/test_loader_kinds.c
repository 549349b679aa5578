/* SPDX-License-Identifier: MIT */
/*
 * Tests of a loader on datasets with unusual files: rare but valid kinds of
 * JPEG, extreme sizes, and damage of every kind; from a folder and from a tar,
 * with each policy, alone and shared among ranks.
 */
#include "jpeg_fixture.h"
#include "loader_fixture.h"
#include "suite.h"

#include "common/base/hash.h"

#define BAD 6
#define ECHO 2

/* Numbers of images. No two ranks have these images at the same places. */
static const unsigned rare[] = {3, 44, 85, 126, 167, 208, 249};
static const unsigned bad[BAD] = {20, 61, 102, 143, 184, 225};

static const char *const sources[] = {"", ".tar"};

static void put_kind(unsigned i, const char *name, uint32_t w, uint32_t h)
{
	const struct jpeg_kind *kind = jpeg_kinds;
	struct jpeg_file f;
	char path[256];

	while (strcmp(kind->name, name) != 0)
		kind++;
	f = jpeg_make(kind, w, h, 0, i, w < 1000);
	image_path(path, i);
	write_file(path, f.data, f.bytes);
	free(f.data);
}

static void put_rare(void)
{
	put_kind(rare[0], "CMYK", 90, 70);
	put_kind(rare[1], "CMYK, not inverted", 70, 90);
	put_kind(rare[2], "YCCK, 4:2:0", 91, 71);
	put_kind(rare[3], "progressive, YCCK", 77, 55);
	put_kind(rare[4], "progressive, 4:2:0", 120, 90);
	put_kind(rare[5], "4:2:0", 1, 1);
	put_kind(rare[6], "CMYK", 1, 1);
}

/* Write enormous dimensions into the header. */
static void make_bomb(unsigned i)
{
	/* 65500 in big-endian order */
	static const uint8_t size[] = {0xff, 0xdc, 0xff, 0xdc};
	char path[256];
	uint8_t *data, *at;
	size_t bytes;

	image_path(path, i);
	data = slurp(AT_FDCWD, path, &bytes);
	at = memmem(data, bytes, "\xff\xc0", 2);
	ck_assert_ptr_nonnull(at);
	memcpy(at + 5, size, sizeof(size));
	write_file(path, data, bytes);
	free(data);
}

static void put_bad(void)
{
	static const char gif[64] = "GIF89a";
	static const char html[] = "<!DOCTYPE html>\n<title>404</title>\n";
	static const char zeros[3000];
	char path[256];
	struct stat st;

	image_path(path, bad[0]);
	write_file(path, "", 0);
	image_path(path, bad[1]);
	write_file(path, html, sizeof(html) - 1);
	image_path(path, bad[2]);
	write_file(path, gif, sizeof(gif));
	image_path(path, bad[3]);
	write_file(path, zeros, sizeof(zeros));
	image_path(path, bad[4]);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size * 2 / 3), 0);
	make_bomb(bad[5]);
}

/* Make a tar with the same examples in the same order. */
static void make_tar(void)
{
	char command[512];

	(void)snprintf(command, sizeof(command),
		"LC_ALL=C tar --sort=name -C %s -cf %s.tar .", top, top);
	ck_assert_int_eq(system(command), 0);
}

static void make_set(void)
{
	fixture_make();
	put_rare();
	put_bad();
	make_tar();
}

static void remove_set(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s.tar", top);
	(void)unlink(path);
	fixture_remove();
}

static bool is_bad(struct refrain_loader *l, uint64_t index)
{
	const char *path = strrchr(refrain_path(l, index), '/') + 1;

	for (unsigned i = 0; i < BAD; i++)
		if ((unsigned)atoi(path) == bad[i])
			return true;
	return false;
}

struct run {
	uint64_t pixels, steps, first_bad; /* first_bad is a step */
	/* number of servings of damaged examples */
	unsigned bad;
	struct refrain_stats stats;
};

static struct run run_of(const struct refrain_config *c)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;
	struct run r = {.first_bad = UINT64_MAX};

	while (refrain_next(l, &b, WAIT_MS) == 1) {
		r.pixels = hash64(b->data, b->data_bytes, r.pixels);
		for (uint32_t i = 0; i < b->count; i++) {
			bool damaged = is_bad(l, b->indices[i]);

			ck_assert_int_eq(b->status[i] != 0, damaged);
			r.bad += damaged;
			if (damaged && r.first_bad > b->step)
				r.first_bad = b->step;
		}
		r.steps++;
		refrain_release(b);
	}
	r.stats = stats_of(l);
	ck_assert_int_eq(refrain_close(l), 0);
	return r;
}

static struct refrain_config config_from(const char *suffix, char path[256])
{
	struct refrain_config c = config_of();

	(void)snprintf(path, 256, "%s%s", top, suffix);
	c.dataset = path;
	c.echo = ECHO;
	return c;
}

START_TEST(test_rare_kinds_are_decoded_as_a_simple_loader_does)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct simple r;

	c.echo = ECHO;
	l = open_loader(&c);
	simple_open(&r, &c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_gt(simple_next(&r, b), 0);
		refrain_release(b);
	}
	ck_assert_uint_eq(stats_of(l).fresh, IMAGES);
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
}
END_TEST

START_TEST(test_counts_are_exact_whatever_is_damaged)
{
	static const int policies[] = {REFRAIN_SUBSTITUTE, REFRAIN_ZERO_FILL};
	uint64_t pixels[2];

	for (unsigned from = 0; from < 2; from++) {
		char path[256];
		struct refrain_config c = config_from(sources[from], path);
		struct run r;

		c.policy = policies[_i % 2];
		c.threads = _i < 2 ? 1 : 4;
		r = run_of(&c);
		pixels[from] = r.pixels;
		ck_assert_uint_eq(r.bad, BAD * ECHO);
		ck_assert_uint_eq(r.stats.fresh, IMAGES);
		ck_assert_uint_eq(r.stats.served, ECHO * IMAGES);
		ck_assert_uint_eq(r.stats.substituted,
			c.policy == REFRAIN_SUBSTITUTE ? BAD * ECHO : 0);
		ck_assert_uint_eq(r.stats.zero_filled,
			c.policy == REFRAIN_ZERO_FILL ? BAD * ECHO : 0);
		if (c.policy == REFRAIN_SUBSTITUTE)
			continue; /* this image may be damaged as well */
		ck_assert_uint_eq(r.stats.errors, BAD);
		ck_assert_uint_eq(r.stats.errors_format, 4);
		ck_assert_uint_eq(r.stats.errors_damaged, 1);
		ck_assert_uint_eq(r.stats.errors_too_large, 1);
		ck_assert_uint_eq(r.stats.decodes, IMAGES - BAD);
	}
	ck_assert_uint_eq(pixels[0], pixels[1]);
}
END_TEST

START_TEST(test_failing_loader_names_a_file_of_the_batch)
{
	char path[256];
	struct refrain_config c = config_from(sources[_i], path);
	struct run r = run_of(&c);
	struct refrain_loader *l;
	const struct refrain_batch *b;
	uint64_t steps = 0;
	char *jpg, message[1024];
	int rc;

	c.policy = REFRAIN_FAIL;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		steps++;
		refrain_release(b);
	}
	ck_assert_int_lt(rc, 0);
	ck_assert_uint_eq(steps, r.first_bad);
	(void)snprintf(message, sizeof(message), "%s", refrain_message(l));
	ck_assert_ptr_nonnull(strstr(message, "cannot decode '"));
	jpg = strstr(message, ".jpg'");
	ck_assert_msg(jpg && jpg - message > 4, "%s", message);
	jpg[0] = '\0';
	for (unsigned i = 0; rc && i < BAD; i++)
		rc = (unsigned)atoi(jpg - 4) == bad[i] ? 0 : rc;
	ck_assert_msg(rc == 0, "%s", message);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_ranks_have_equally_many_batches_whatever_is_damaged)
{
	unsigned servings = 0;
	uint64_t steps = 0;

	for (unsigned rank = 0; rank < 3; rank++) {
		char path[256];
		struct refrain_config c = config_from(sources[_i % 2], path);
		struct run r;

		c.policy = _i < 2 ? REFRAIN_SUBSTITUTE : REFRAIN_ZERO_FILL;
		c.world = 3;
		c.rank = rank;
		r = run_of(&c);
		if (rank > 0)
			ck_assert_uint_eq(r.steps, steps);
		steps = r.steps;
		servings += r.bad;
		ck_assert_uint_eq(r.stats.served, ECHO * IMAGES / 3);
	}
	ck_assert_uint_eq(servings, BAD * ECHO);
}
END_TEST

/* -- Large ones ------------------------------------------------------------ */

/* The coefficients of the image take 18 MB. That is less than the whole budget,
 * but more than the budget without the batches. */
#define LARGE_BYTES 18400000

static void put_large(void)
{
	fixture_make();
	put_kind(123, "progressive, 4:2:0", 3000, 2000);
}

START_TEST(test_nothing_is_dropped_for_what_would_not_fit_alone)
{
	struct refrain_config c = config_of();
	struct refrain_stats st;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	unsigned failed = 0;

	c.policy = REFRAIN_ZERO_FILL;
	c.memory_bytes = LARGE_BYTES;
	c.echo = 4;
	c.threads = 1U << _i;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			failed += b->status[i] != 0;
			if (b->status[i])
				ck_assert_int_eq(b->status[i], -E2BIG);
		}
		refrain_release(b);
	}
	st = stats_of(l);
	ck_assert_uint_eq(failed, 4);
	ck_assert_uint_eq(st.errors_too_large, 1);
	ck_assert_uint_eq(st.decodes, IMAGES - 1);
	ck_assert_uint_eq(st.rereads, 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* The image has a hundred million pixels, but only one row of them is in memory
 * at a time. */
START_TEST(test_image_of_100_megapixels_is_decoded_within_the_budget)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;

	fixture_make();
	put_kind(123, "grey", 10000, 10000);
	c.memory_bytes = 8 << 20;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	st = stats_of(l);
	ck_assert_uint_eq(st.errors, 0);
	ck_assert_uint_eq(st.decodes, IMAGES);
	ck_assert_uint_le(st.memory_bytes_peak, c.memory_bytes);
	ck_assert_int_eq(refrain_close(l), 0);
	fixture_remove();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_kinds");
	TCase *tc = case_with(s, "kinds", make_set, remove_set);
	TCase *large = case_with(s, "large", put_large, fixture_remove);

	tcase_add_test(tc, test_rare_kinds_are_decoded_as_a_simple_loader_does);
	tcase_add_loop_test(
		tc, test_counts_are_exact_whatever_is_damaged, 0, 4);
	tcase_add_loop_test(
		tc, test_failing_loader_names_a_file_of_the_batch, 0, 2);
	tcase_add_loop_test(tc,
		test_ranks_have_equally_many_batches_whatever_is_damaged, 0, 4);
	tcase_add_loop_test(large,
		test_nothing_is_dropped_for_what_would_not_fit_alone, 0, 3);
	large = case_of(s, "largest");
	tcase_add_test(large,
		test_image_of_100_megapixels_is_decoded_within_the_budget);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
