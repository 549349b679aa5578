/* SPDX-License-Identifier: MIT */
/* Tests of files that are read twice at one position. The kernel does so when
 * it has dropped pages before their reader got them. */
#include <stdio.h>

#include "cache_fixture.h"
#include "mount/plan/prefetch.h"
#include "suite.h"

#define SIZE 200000u
#define FILES 12u
#define EPOCHS 3u
#define SPREAD 8u /* shorter than an epoch */
#define READER 7
#define NOTHING_FITS "128K"

struct course {
	struct rig g;
	struct plans *plans;
	struct plan *plan;
};

static bool course_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	struct course *k = arg;

	*file = file_item(&k->g, cookie, SIZE, 0);
	return true;
}

static void course_start(
	struct course *k, pid_t reader, unsigned files, const char *tier)
{
	struct plans_config config = {.file = course_file, .arg = k};
	struct plan_params params = {.spread = SPREAD, .reader = reader};

	rig_start(&k->g, tier);
	config.cache = k->g.cache;
	config.counters = &k->g.fix.counters;
	ck_assert_int_eq(plans_new(&k->plans, &config), 0);
	ck_assert_int_eq(
		plan_open(k->plans, &params, &k->plan, &k->g.fix.err), 0);
	for (unsigned i = 0; i < EPOCHS * files; i++)
		ck_assert_int_eq(
			plan_add(k->plan, i / files, i % files + 1), 0);
}

static void course_stop(struct course *k)
{
	plan_close(k->plan);
	plans_free(k->plans);
	rig_stop(&k->g);
}

static enum plans_turn read_at(struct course *k, uint64_t cookie, uint64_t off)
{
	struct cache_item item = file_item(&k->g, cookie, SIZE, 0);

	return plans_note(k->plans, &item, off, SIZE - off, READER, NULL);
}

/* Read bytes of a file, and check the answer. */
static void read_bytes(
	struct course *k, uint64_t cookie, uint64_t off, size_t len)
{
	struct cache_item item = file_item(&k->g, cookie, SIZE, 0);
	struct probe p;
	struct plans_read more;

	(void)plans_note(k->plans, &item, off, len, READER, &more);
	probe_again(&k->g, &p, item, off, len, more.again_bytes);
	answer_all(&k->g.hand);
	probe_wait(&p);
	ck_assert(p.right);
}

/* Is this the first read of a position, and not a repeated one? */
static bool is_first(struct course *k, uint64_t cookie, uint64_t off)
{
	enum plans_turn turn = read_at(k, cookie, off);

	ck_assert(turn != PLANS_NONE);
	return turn == PLANS_NOW || turn == PLANS_LATER;
}

static uint64_t reads(struct course *k)
{
	struct plan_status s;

	plan_status(k->plan, &s);
	return s.read;
}

START_TEST(test_a_second_read_is_not_of_the_next_epoch)
{
	struct course k;

	course_start(&k, _i ? READER : 0, FILES, NOTHING_FITS);
	for (unsigned f = 1; f <= 3; f++)
		ck_assert(is_first(&k, f, 0));
	ck_assert(!is_first(&k, 1, 0));
	ck_assert(!is_first(&k, 1, 131072));
	ck_assert_uint_eq(reads(&k), 3);
	/* After that, the positions continue as planned. */
	for (unsigned f = 4; f <= FILES; f++)
		ck_assert(is_first(&k, f, 0));
	ck_assert(is_first(&k, 1, 0));
	ck_assert_uint_eq(reads(&k), FILES + 1);
	course_stop(&k);
}
END_TEST

/* The epoch is so short that a second read may belong to the next one. Each
 * file still has as many positions as are left, and none is held for ever. */
START_TEST(test_a_second_read_in_a_short_epoch_takes_one_position)
{
	struct course k;

	course_start(&k, READER, SPREAD / 2, NOTHING_FITS);
	for (unsigned f = 1; f <= 3; f++)
		ck_assert(is_first(&k, f, 0));
	ck_assert(is_first(&k, 1, 0));
	ck_assert_uint_eq(reads(&k), 4);
	for (unsigned e = 0; e < EPOCHS; e++)
		for (unsigned f = e ? 1 : 4; f <= SPREAD / 2; f++)
			(void)read_at(&k, f, 0);
	plan_progress(k.plan, EPOCHS * SPREAD / 2);
	ck_assert(plan_wait(k.plan, 10 * NS_PER_S));
	ck_assert_uint_eq(reads(&k), EPOCHS * SPREAD / 2);
	course_stop(&k);
}
END_TEST

/* Read one page in the middle again. The file has been in a tier since it was
 * read. */
START_TEST(test_what_the_kernel_has_dropped_counts_apart_from_hits)
{
	const struct counters *c;
	struct course k;
	uint64_t hits;

	course_start(&k, READER, FILES, "8M");
	c = &k.g.fix.counters;
	for (unsigned f = 1; f <= FILES; f++) {
		read_bytes(&k, f, 0, 131072);
		read_bytes(&k, f, 131072, SIZE - 131072);
	}
	cache_settle(k.g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(c->admitted, FILES);
	/* Some of the file came into the tier before it was read. */
	hits = c->hit_bytes;
	read_bytes(&k, 3, 40960, 4096);
	ck_assert_uint_eq(c->hit_bytes, hits + 4096);
	ck_assert_uint_eq(c->reread_bytes, 4096);
	/* In the next epoch all reads hit, even if a file is read in two
	 * pieces. */
	read_bytes(&k, 3, 0, 131072);
	read_bytes(&k, 3, 131072, SIZE - 131072);
	ck_assert_uint_eq(c->hit_bytes, hits + 4096 + SIZE);
	ck_assert_uint_eq(c->reread_bytes, 4096);
	/* A part of the bytes that are requested again may be new to the
	 * reader. */
	read_bytes(&k, 5, 0, 65536);
	read_bytes(&k, 5, 40960, SIZE - 40960);
	ck_assert_uint_eq(c->reread_bytes, 4096 + 65536 - 40960);
	course_stop(&k);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan_again");
	TCase *t = case_of(suite, "plan_again");

	tcase_add_loop_test(
		t, test_a_second_read_is_not_of_the_next_epoch, 0, 2);
	tcase_add_test(
		t, test_a_second_read_in_a_short_epoch_takes_one_position);
	tcase_add_test(
		t, test_what_the_kernel_has_dropped_counts_apart_from_hits);
	return run_suite(suite);
}
