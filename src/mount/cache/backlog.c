/* SPDX-License-Identifier: MIT */
#include "mount/cache/backlog.h"

#include "common/base/clock.h"
#include "mount/cache/depth.h"

void backlog_add(struct backlog *b, uint64_t more, const struct depth *d)
{
	(void)atomic_fetch_add_explicit(
		&b->requests, more, memory_order_relaxed);
	atomic_store_explicit(&b->depth, depth_settled(d) ? depth_limit(d) : 0,
		memory_order_relaxed);
}

static uint64_t requests_left(const struct backlog *b)
{
	return atomic_load_explicit(&b->requests, memory_order_relaxed);
}

void backlog_came(struct backlog *b, size_t bytes, bool answered)
{
	uint32_t depth = atomic_load_explicit(&b->depth, memory_order_relaxed);

	speed_note(&b->speed,
		&(struct speed_answer){
			.now_ns = clock_now_ns(),
			.bytes = bytes,
			.answered = answered,
			.more = requests_left(b),
			.depth = depth,
		});
}

void backlog_left(struct backlog *b)
{
	if (requests_left(b) == 0)
		speed_stop(&b->speed);
}
