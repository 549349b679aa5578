/* SPDX-License-Identifier: MIT */
/*
 * A random case of the schedule: one run on all of its ranks, with changes of
 * the factor on the way, written down; and what must hold of it, counted in
 * the obvious way. What does not hold ends the test.
 */
#ifndef TESTS_SCHEDULE_SCENE_H
#define TESTS_SCHEDULE_SCENE_H

#include <inttypes.h>

#include "schedule_fixture.h"

#define WORLD_MAX 7
#define CHANGES_MAX 6

struct change {
	uint64_t begins; /* the first unit with the factor */
	struct schedule_echo echo;
};

/* One random case: the same run on all of its ranks. */
struct scene {
	struct dice dice;
	struct schedule_config c;
	struct schedule s[WORLD_MAX];
	struct stream st[WORLD_MAX];
	struct change log[CHANGES_MAX + 1];
	uint32_t changes; /* log[0] is the beginning */
	uint64_t asked[CHANGES_MAX + 1];
};

/* Draw a configuration with the dice of the scene; run it. */
void scene_draw(struct scene *sc);
void scene_run(struct scene *sc);
void scene_free(struct scene *sc);

/* One rank's stream: where each slot comes from, counts, lags, steps. */
void expect_stream(const struct scene *sc, uint32_t rank);

/* Every position of a rank's stream can be found directly. */
void expect_access(struct scene *sc, uint32_t rank);

/* Over all ranks: every example once an epoch. */
void expect_cover(const struct scene *sc);

/* Begun anew at any step, by as many ranks or by others: the rest, once. */
void expect_resume(struct scene *sc);
void expect_elastic(struct scene *sc);

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
