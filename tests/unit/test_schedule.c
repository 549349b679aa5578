/* SPDX-License-Identifier: MIT */
/* Tests of the schedule with thousands of random configurations, which are
 * compared with simple checks: counters, bitmaps, and the construction by plain
 * loops. REFRAIN_TEST_SCHEDULES sets the number of configurations, and
 * REFRAIN_TEST_SEED the seed. */
#include <malloc.h>
#include <stdio.h>

#include "schedule_scene.h"

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_scene(struct scene *sc)
{
	for (uint32_t r = 0; r < sc->c.world; r++) {
		expect_stream(sc, r);
		expect_access(sc, r);
	}
	expect_cover(sc);
	expect_resume(sc);
	expect_elastic(sc);
}

static void describe(const struct scene *sc, uint64_t seed)
{
	const struct schedule_config *c = &sc->c;

	printf("# case %" PRIu64 ": N %" PRIu64 " x %" PRIu64 " B %u W %" PRIu64
	       " E %u/%u world %u lag %u",
		seed, c->examples, c->epochs, c->batch, c->window, c->echo.p,
		c->echo.q, c->world, c->lag);
	printf(" point %d order %d share %d drop %d small %d\n", c->point,
		c->order, c->share, c->drop_last, c->allow_small_window);
	fflush(stdout);
}

START_TEST(test_random_schedules_are_what_plain_counting_says)
{
	uint64_t n = from_environment("REFRAIN_TEST_SCHEDULES", 10000);
	uint64_t seed = from_environment("REFRAIN_TEST_SEED", 0);
	uint64_t changed = 0;
	struct scene *sc = calloc(1, sizeof(*sc));

	/* This test runs in four processes, and each runs a quarter of the
	 * cases. */
	for (uint64_t i = (uint64_t)_i; i < n; i += 4) {
		*sc = (struct scene){.dice = {(seed + i) * 7919 + 17}};
		roll(&sc->dice, 2);
		scene_draw(sc);
		if (getenv("REFRAIN_TEST_SEED"))
			describe(sc, seed + i);
		scene_run(sc);
		check_scene(sc);
		changed += sc->changes;
		scene_free(sc);
	}
	/* The cases must include changes. */
	ck_assert(n < 1000 || changed > n / 20);
	free(sc);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("schedule");
	TCase *t = case_of(s, "schedule");

	/* Thousands of streams are allocated and freed: keep their pages. */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	tcase_set_timeout(t, 600);
	tcase_add_loop_test(
		t, test_random_schedules_are_what_plain_counting_says, 0, 4);
	return run_suite(s);
}
