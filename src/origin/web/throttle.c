/* SPDX-License-Identifier: MIT */
/*
 * Adapts the depth if the server refuses requests. The depth then falls by half
 * of the share of requests that were refused since it last fell: by half if the
 * server refuses all, by a twentieth if it refuses a tenth. So a server that
 * refuses requests above its rate refuses only few once the depth fits, and a
 * server that refuses requests at random still gets many. In each round trip,
 * the depth grows by the same number of requests. Starts no thread and reads no
 * clock.
 */
#include "origin/web/throttle.h"

/* The minimum depth. A lower one would waste a link without helping the server.
 */
#define DEPTH_LEAST 8u

/* With the answers of each round trip, the depth grows by this fraction of its
 * limit: one 32nd. */
#define GROWS 32u

void throttle_init(struct throttle *t, unsigned most)
{
	*t = (struct throttle){.most = most, .depth = most};
}

bool throttle_refused(struct throttle *t, uint64_t now_ns, uint64_t round_ns)
{
	unsigned before = t->depth, all, less;

	t->refusals++;
	if (now_ns - t->cut_ns < round_ns)
		return false;
	all = t->answers + t->refusals;
	/* The division rounds up, so that the depth always falls. */
	less = (unsigned)(((uint64_t)before * t->refusals + 2 * all - 1) /
		(2 * (uint64_t)all));
	t->cut_ns = now_ns;
	t->answers = t->refusals = t->credit = 0;
	if (before > DEPTH_LEAST)
		t->depth = before - less > DEPTH_LEAST ? before - less
						       : DEPTH_LEAST;
	return t->depth < before;
}

void throttle_answered(struct throttle *t)
{
	unsigned more = t->most / GROWS ? t->most / GROWS : 1;

	t->answers++;
	if (t->depth >= t->most || ++t->credit < t->depth)
		return;
	t->credit = 0;
	t->depth = t->most - t->depth > more ? t->depth + more : t->most;
}
