/* SPDX-License-Identifier: MIT */
/* For tests of plans: a real cache over an origin whose answers the test gives,
 * and a reader that reads files in the order of a plan. */
#ifndef PLAN_FIXTURE_H
#define PLAN_FIXTURE_H

#include <unistd.h>

#include "cache_fixture.h"
#include "mount/plan/plan_impl.h"
#include "mount/plan/prefetch.h"
#include "suite.h"

#define SIZE 200000u /* size of a file for which the tier has no room */
#define AHEAD (STAGING / 2 / SIZE)
#define GONE 666u     /* the file of this cookie has been deleted */
#define LARGE 100000u /* files from this cookie on have several items */
#define LARGE_ITEMS 6u
#define LARGE_SIZE (LARGE_ITEMS * CHUNK)

struct course {
	struct rig g;
	struct plans *plans;
	struct store_scratch *scratch;
};

static bool course_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	char path[32];

	(void)arg;
	if (cookie == GONE)
		return false;
	(void)rig_path(NULL, cookie, path, sizeof(path));
	*file = (struct cache_item){
		.digest = key_digest(path),
		.version = {.size_bytes = cookie == 0 ? 0
				: cookie >= LARGE     ? LARGE_SIZE
						      : SIZE,
			.mtime_ns = 1},
		.cookie = cookie,
	};
	return true;
}

static inline void course_start(struct course *k, const char *tier)
{
	struct plans_config config = {.file = course_file};

	rig_start(&k->g, tier);
	config.cache = k->g.cache;
	config.counters = &k->g.fix.counters;
	ck_assert_int_eq(plans_new(&k->plans, &config), 0);
}

static inline void course_stop(struct course *k)
{
	plans_free(k->plans);
	rig_stop(&k->g);
}

static inline struct plan *open_plan(struct course *k, uint64_t slack)
{
	struct plan_params params = {.slack = slack};
	struct plan *plan;

	ck_assert_int_eq(plan_open(k->plans, &params, &plan, &k->g.fix.err), 0);
	return plan;
}

static inline void add(
	struct plan *plan, uint64_t epoch, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		ck_assert_int_eq(plan_add(plan, epoch, i), 0);
}

/* Read a file as the fs does: note the read, then read the whole file. */
static inline void read_file(struct course *k, uint64_t cookie)
{
	struct cache_item item = file_item(&k->g, cookie, SIZE, 0);
	struct plans_read more;
	struct probe p;

	(void)plans_note(k->plans, &item, 0, SIZE, 0, &more);
	item.barred = more.barred;
	probe_read(&k->g, &p, item, 0, SIZE);
	while (!__atomic_load_n(&p.done, __ATOMIC_ACQUIRE))
		answer_all(&k->g.hand);
	probe_wait(&p);
	ck_assert(p.right);
}

static inline uint64_t field(struct plan *plan, size_t offset)
{
	struct plan_status s;

	plan_status(plan, &s);
	return *(uint64_t *)((char *)&s + offset);
}

#define STATUS(plan, name) field(plan, offsetof(struct plan_status, name))

/* Answer requests of the origin until the value is reached; the test's time-out
 * ends the wait. */
#define WAIT_FOR(k, plan, name, value)                                         \
	while (STATUS(plan, name) != (value)) {                                \
		answer_all(&(k)->g.hand);                                      \
		sched_yield();                                                 \
	}

static inline uint64_t wasted(struct course *k)
{
	return k->g.fix.counters.prefetch_wasted;
}

/* Begin a plan for the files 1 to n. */
static inline struct plan *begin(
	struct course *k, const char *tier, uint64_t slack, uint64_t n)
{
	struct plan *plan;

	course_start(k, tier);
	plan = open_plan(k, slack);
	add(plan, 1, 1, n + 1);
	return plan;
}

static inline void end(struct course *k, struct plan *plan)
{
	plan_close(plan);
	course_stop(k);
}

static inline void read_files(struct course *k, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		read_file(k, i);
}

/* Check that the plan is done, and that these numbers of files were fetched and
 * given up. */
static inline void finish(struct course *k, struct plan *plan, uint64_t fetched,
	uint64_t given_up)
{
	ck_assert(plan_wait(plan, 10 * NS_PER_S));
	ck_assert_uint_eq(k->g.fix.counters.origin_bytes, fetched * SIZE);
	ck_assert_uint_eq(wasted(k), given_up);
}

#endif
