/* SPDX-License-Identifier: MIT */
/* Decides how fast the loops send: their depth, round-trip times and hedges. */
#include "origin/web/web_loops.h"

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "origin/web/web_loop_impl.h"

/* Minimum number of measured times for a percentile. */
#define TIMES_LEAST 32u
#define TIMES_HALVE 4096u
/* Maximum percentage of hedges among requests. At the start, HEDGES_FREE more
 * are allowed. */
#define HEDGE_PCT 3u
#define HEDGES_FREE 2u

unsigned loops_depth(const struct loops *e)
{
	return atomic_load_explicit(&e->depth, memory_order_relaxed);
}

uint64_t loops_round_trip_ns(const struct loops *e)
{
	uint64_t ns = atomic_load_explicit(&e->round_ns, memory_order_relaxed);

	return ns ? ns : 10 * NS_PER_MS;
}

bool loops_throttled(struct loops *e)
{
	bool fell;
	LOCK_SCOPE(&e->throttle_lock);

	fell = throttle_refused(
		&e->throttle, clock_now_ns(), loops_round_trip_ns(e));
	atomic_store_explicit(
		&e->depth, e->throttle.depth, memory_order_relaxed);
	return fell;
}

void loops_answered(struct loops *e)
{
	LOCK_SCOPE(&e->throttle_lock);

	throttle_answered(&e->throttle);
	atomic_store_explicit(
		&e->depth, e->throttle.depth, memory_order_relaxed);
}

bool loops_may_hedge(struct loops *e)
{
	uint64_t requests =
		atomic_load_explicit(&e->requests, memory_order_relaxed);
	uint64_t hedges =
		atomic_load_explicit(&e->hedges, memory_order_relaxed);

	/* Do not send hedges while the server tells this client to slow down.
	 */
	if (loops_depth(e) < e->config.depth)
		return false;
	if (hedges >= requests * HEDGE_PCT / 100 + HEDGES_FREE)
		return false;
	atomic_fetch_add_explicit(&e->hedges, 1, memory_order_relaxed);
	return true;
}

static unsigned time_bucket(uint64_t ns)
{
	uint64_t us = ns / NS_PER_US + 8;
	unsigned log = 63 - (unsigned)__builtin_clzll(us);
	unsigned bucket = log * 8 + (unsigned)((us >> (log - 3)) & 7);

	return bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1;
}

static uint64_t bucket_end_ns(unsigned bucket)
{
	unsigned log = bucket / 8;

	if (log < 3)
		return 0;
	return ((UINT64_C(9) + bucket % 8) << (log - 3)) * NS_PER_US;
}

static void find_slow(struct web_loop *l)
{
	uint32_t above = l->ntimes / 20;
	unsigned b = TIMES_BUCKETS;
	uint64_t slow;

	while (b > 0 && l->times[b - 1] <= above)
		above -= l->times[--b];
	slow = b > 0 ? 3 * bucket_end_ns(b - 1) : 0;
	l->slow_ns = slow > SLOW_LEAST_NS ? slow : SLOW_LEAST_NS;
}

void web_loop_note_time(struct web_loop *l, uint64_t ns)
{
	struct loops *e = l->e;
	uint64_t old = atomic_load_explicit(&e->round_ns, memory_order_relaxed);

	atomic_store_explicit(&e->round_ns, old ? old - old / 8 + ns / 8 : ns,
		memory_order_relaxed);
	l->times[time_bucket(ns)]++;
	l->ntimes++;
	if (l->ntimes % TIMES_LEAST == 0)
		find_slow(l);
	if (l->ntimes < TIMES_HALVE)
		return;
	l->ntimes = 0;
	for (unsigned i = 0; i < TIMES_BUCKETS; i++)
		l->ntimes += l->times[i] /= 2;
}
