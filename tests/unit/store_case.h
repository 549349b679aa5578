/* SPDX-License-Identifier: MIT */
/* For programs whose tests have one store each. */
#ifndef TESTS_STORE_CASE_H
#define TESTS_STORE_CASE_H

#include "store_fixture.h"

#define ITEM ((uint64_t)110000)

static struct fixture fx;

static inline void setup(void)
{
	fixture_init(&fx);
}

static inline void teardown(void)
{
	fixture_release(&fx);
}

static inline struct tier_status status_of(size_t tier)
{
	struct tier_status st;

	store_tier_status(fx.store, tier, &st);
	return st;
}

#endif
