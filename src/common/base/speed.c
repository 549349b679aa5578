/* SPDX-License-Identifier: MIT */
#include "common/base/speed.h"

static void sum_add(_Atomic uint64_t *sum, uint64_t n)
{
	(void)atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

static void set_running(struct speed *s, bool running)
{
	atomic_store_explicit(&s->running, running, memory_order_relaxed);
}

static bool is_running(const struct speed *s)
{
	return atomic_load_explicit(&s->running, memory_order_relaxed);
}

static void measured(struct speed *s, uint64_t now_ns)
{
	uint64_t ns = now_ns - s->mark_ns;

	sum_add(&s->full_ns, ns);
	sum_add(&s->full_bytes, s->mark_bytes);
	if (s->mark_ns - s->run_ns < SPEED_SAVED_NS)
		return;
	sum_add(&s->long_ns, ns);
	sum_add(&s->long_bytes, s->mark_bytes);
}

static void mark(struct speed *s, const struct speed_answer *a)
{
	if (!is_running(s)) {
		s->run_ns = a->now_ns;
		sum_add(&s->runs, 1);
		set_running(s, true);
	}
	s->mark_ns = a->now_ns;
	s->mark_bytes = 0;
	s->left = a->depth;
}

void speed_note(struct speed *s, const struct speed_answer *a)
{
	s->mark_bytes += a->bytes;
	if (!a->answered)
		return;
	if (s->left > 0 && --s->left == 0)
		measured(s, a->now_ns);
	/* Requests were dropped: there are too few left for the measurement to
	 * end. */
	if (s->left > a->more)
		speed_stop(s);
	if (s->left > 0)
		return;
	if (a->depth > 0 && a->more >= a->depth)
		mark(s, a);
	else
		set_running(s, false);
}

void speed_stop(struct speed *s)
{
	s->left = 0;
	set_running(s, false);
}
