/* SPDX-License-Identifier: MIT */
/*
 * A random case of the schedule: one run on all of its ranks, with changes of
 * the factor on the way, as a list; and checks of its guarantees, which count
 * in the obvious way. A check that fails ends the test.
 */
#ifndef TESTS_SCHEDULE_SCENE_H
#define TESTS_SCHEDULE_SCENE_H

#include <inttypes.h>

#include "common/schedule/bucket.h"
#include "common/schedule/mix.h"
#include "schedule_fixture.h"

#define WORLD_MAX 7
#define CHANGES_MAX 6
#define PARTS_MAX 4

struct change {
	uint64_t begins; /* the first unit that has the factor */
	struct schedule_echo echo;
};

/* One random case: the same run on all of its ranks. */
struct scene {
	struct dice dice;
	struct schedule_config c;
	struct schedule s[WORLD_MAX];
	struct stream st[WORLD_MAX];
	struct change log[CHANGES_MAX + 1];
	/* number of changes; log[0] is the factor at the beginning */
	uint32_t changes;
	uint64_t asked[CHANGES_MAX + 1];
	/* The mix, if there is one. Its parts follow each other in the dataset.
	 * The second stage has the weights in the other order. */
	struct part_mix *mix;
	struct mix_part part[PARTS_MAX];
	uint32_t weight[2][PARTS_MAX], parts;
	/* first epoch of the second stage; 0: there is no second stage */
	uint64_t second_stage;
	struct buckets *buckets;
	uint32_t *lengths;
};

/* Draw a configuration with the dice of the scene, and run it. */
void scene_draw(struct scene *sc);
void scene_run(struct scene *sc);
void scene_free(struct scene *sc);

/* Check one rank's stream: the unit of each slot, counts, lags, steps. */
void expect_stream(const struct scene *sc, uint32_t rank);

/* Check that every position of a rank's stream can be found directly. */
void expect_access(struct scene *sc, uint32_t rank);

/* Check that all ranks together serve every example once a pass. */
void expect_cover(const struct scene *sc);

/* Check that a run that continues at any step, with the same or another number
 * of ranks, serves every remaining example once. */
void expect_resume(struct scene *sc);
void expect_elastic(struct scene *sc);

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
