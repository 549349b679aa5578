/* SPDX-License-Identifier: MIT */
/*
 * The depth of surplus requests, by trying: a window of answers measures the
 * rate of one level; an unknown neighbour is tried next, and otherwise the
 * lowest level that is good enough is kept, with a look at its neighbours
 * every now and then, for origins change. A pure state machine.
 */
#include "cache/depth.h"

#include "base/clock.h"

/* A window is over when it is long enough and has enough answers. */
#define WINDOW_NS (500 * NS_PER_MS)
#define WINDOW_ANSWERS_PER_REQUEST 2u

/* Windows at a level before its neighbours are looked at again. */
#define LOOK_AGAIN 32u

#define GOOD_ENOUGH 0.95

void depth_init(struct depth *d)
{
	*d = (struct depth){.level = 2};
}

unsigned depth_limit(const struct depth *d)
{
	return 1u << d->level;
}

static double best_rate(const struct depth *d)
{
	double best = 0;

	for (unsigned i = 0; i < DEPTH_LEVELS; i++)
		if (d->rate[i] > best)
			best = d->rate[i];
	return best;
}

static unsigned lowest_good(const struct depth *d)
{
	double enough = GOOD_ENOUGH * best_rate(d);
	unsigned i = 0;

	while (d->rate[i] == 0 || d->rate[i] < enough)
		i++;
	return i;
}

/*
 * Where to go after a window: down while that is unknown and this level is good
 * enough, for what waits behind us costs readers more than a slow start costs
 * us; then up, as long as that is unknown.
 */
static unsigned next_level(struct depth *d)
{
	unsigned level = lowest_good(d);

	if (level > 0 && d->rate[level - 1] == 0)
		return level - 1;
	if (level + 1 < DEPTH_LEVELS && d->rate[level + 1] == 0)
		return level + 1;
	return level;
}

static void window_end(struct depth *d, uint64_t now_ns)
{
	double rate = (double)d->bytes * (double)NS_PER_S /
		(double)(now_ns - d->begin_ns);
	double old = d->rate[d->level];

	d->rate[d->level] = old > 0 ? (old + rate) / 2 : rate;
	if (++d->windows >= LOOK_AGAIN) {
		d->windows = 0;
		for (unsigned i = 0; i < DEPTH_LEVELS; i++)
			if (i != d->level)
				d->rate[i] = 0;
	}
	d->level = next_level(d);
	d->begin_ns = 0;
}

void depth_note(struct depth *d, uint64_t bytes, bool busy, uint64_t now_ns)
{
	if (!busy || d->begin_ns == 0) {
		d->begin_ns = busy ? now_ns : 0;
		d->bytes = 0;
		d->answers = 0;
		return;
	}
	d->bytes += bytes;
	d->answers++;
	if (now_ns - d->begin_ns >= WINDOW_NS &&
		d->answers >= WINDOW_ANSWERS_PER_REQUEST * depth_limit(d))
		window_end(d, now_ns);
}
