/* SPDX-License-Identifier: MIT */
/*
 * Finds the depth by trying. A level is a number of requests in flight, no
 * matter for whom. To measure the rate at one level, the file adds up the bytes
 * of a number of successive answers, which are called a window. As long as each
 * level is faster than the one before, the next higher one is tried, so for a
 * distant origin the search takes some ten times the duration of a request.
 * Then the lowest level that is good enough stays.
 *
 * Lower levels are tried again when requests wait for one another, and higher
 * levels when they do not. Both are also tried again from time to time, because
 * origins change. The file starts no thread and reads no clock.
 */
#include "mount/cache/depth.h"

#include "common/base/clock.h"

/* A window lasts at least this long and has at least this many answers. */
#define WINDOW_NS (100 * NS_PER_MS)
#define WINDOW_ANSWERS 8u

/* After LOOK_AGAIN windows at one level, a neighbouring level is tried again if
 * it is likely to be better. Every LOOK_BOTH times, both neighbours are tried.
 */
#define LOOK_AGAIN 32u
#define LOOK_BOTH 8u

/* A level is good enough if its rate is at most this fraction below the best
 * rate. The goal is to lose at most 5 % of it; other delays may cost 2 %. */
#define LACK_MAX 0.03

/* If the mean duration of requests is this many times the shortest one,
 * requests wait for one another at the origin, so more requests hardly help. If
 * it is nearly twice the shortest, half as many requests may be enough. */
#define WAITING 1.3
#define WAITING_TWICE 1.9

/* If the rate of a level changes by this factor, the origin has changed. */
#define CHANGED 2

/* A mean number of requests above this fraction of a level counts as that
 * level. */
#define NEARLY 0.9

/* With each answer, the shortest duration that is remembered grows by 1 /
 * LEAST_FADES, and the shortest recent one by 1 / RECENT_FADES, so that old
 * answers lose their weight. */
#define LEAST_FADES 8192u
#define RECENT_FADES 64u

/* The number of requests at which the search begins, unless the origin gives
 * another. */
#define FIRST 4u

void depth_init(struct depth *d, unsigned most)
{
	*d = (struct depth){.most = most ? most : 1};
	depth_begin(d, FIRST);
}

void depth_begin(struct depth *d, unsigned requests)
{
	d->level = 0;
	while (d->level + 1 < DEPTH_LEVELS && 1u << d->level < requests &&
		1u << d->level < d->most)
		d->level++;
	d->skip = depth_limit(d);
}

unsigned depth_limit(const struct depth *d)
{
	unsigned limit = 1u << d->level;

	return limit < d->most ? limit : d->most;
}

uint64_t depth_recent_ns(const struct depth *d)
{
	return atomic_load_explicit(&d->recent_ns, memory_order_relaxed);
}

static bool has_above(const struct depth *d)
{
	return d->level + 1 < DEPTH_LEVELS && depth_limit(d) < d->most;
}

bool depth_allows(const struct depth *d, unsigned going, unsigned ahead)
{
	return going < depth_limit(d) || ahead == 0;
}

static bool known(const struct depth *d, unsigned level)
{
	return d->rate[level] > 0;
}

bool depth_settled(const struct depth *d)
{
	return known(d, d->level) && (!has_above(d) || known(d, d->level + 1));
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
	double enough = best_rate(d) * (1 - LACK_MAX);
	unsigned i = 0;

	while (!known(d, i) || d->rate[i] < enough)
		i++;
	return i;
}

/* Returns the mean duration of a request, as a multiple of the shortest. */
static double waiting(const struct depth *d)
{
	return (double)d->took_ns / d->answers / (double)d->least_ns;
}

/*
 * Returns the level of the window that ends now. It depends on the mean number
 * of requests in flight, because readers may have sent more than the present
 * level allows. The mean is the sum of the durations of the requests, divided
 * by the duration of the window. A count at the times of the answers would be
 * too low: several answers may arrive before their readers send the next
 * requests.
 */
static unsigned window_level(const struct depth *d, uint64_t now_ns)
{
	double going = (double)d->took_ns / (double)(now_ns - d->begin_ns);
	unsigned level = d->level;

	while (level + 1 < DEPTH_LEVELS && 1u << level < d->most &&
		going > NEARLY * (2u << level))
		level++;
	return level;
}

/*
 * Returns the next level after a window at `level`. The level rises while the
 * next higher one is unknown and each level was better than the one before.
 * Then it falls to the lowest level that is good enough. It falls further while
 * the next lower one is unknown, unless readers keep more requests in flight.
 */
static unsigned next_level(struct depth *d, unsigned level)
{
	unsigned good = lowest_good(d);

	d->busy |= level > d->level && !known(d, d->level);
	d->level = good;
	if (good == level && has_above(d) && !known(d, good + 1))
		return good + 1;
	if (good == level && good > 0 && !known(d, good - 1) && !d->busy)
		return good - 1;
	return good;
}

static void forget_levels(struct depth *d, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		d->rate[i] = 0;
}

/* Forget rates of other levels, so that these levels are tried again. */
static void forget_others(struct depth *d, unsigned level)
{
	bool both = ++d->rounds >= LOOK_BOTH;

	d->windows = 0;
	if (both)
		d->rounds = 0;
	if (both || waiting(d) > WAITING_TWICE) {
		forget_levels(d, 0, d->level < level ? d->level : level);
		d->busy = false;
	}
	if (both || waiting(d) < WAITING)
		forget_levels(d, level + 1, DEPTH_LEVELS);
}

static double rate_of(const struct depth *d, uint64_t now_ns)
{
	return (double)d->bytes * (double)NS_PER_S /
		(double)(now_ns - d->begin_ns);
}

static bool rate_changed(double before, double rate)
{
	return before > 0 &&
		(rate > before * CHANGED || rate * CHANGED < before);
}

static void window_begin(struct depth *d, uint64_t now_ns)
{
	d->begin_ns = now_ns;
	d->bytes = d->took_ns = 0;
	d->answers = 0;
}

/* The origin has changed: forget all rates. */
static void start_over(struct depth *d)
{
	forget_levels(d, 0, DEPTH_LEVELS);
	d->least_ns = 0;
	d->windows = d->rounds = 0;
	d->busy = false;
}

/* Handle a rate that differs much from the earlier one. If the origin has only
 * paused, the rate of the next window is as before, and nothing is
 * forgotten. */
static void note_change(struct depth *d, const struct depth_answer *a)
{
	if (d->odd)
		start_over(d);
	d->odd = !d->odd;
	d->skip = a->going;
}

static void note_rate(struct depth *d, unsigned level, double rate)
{
	double before = d->rate[level];

	d->rate[level] = before > 0 ? (before + rate) / 2 : rate;
	if (++d->windows >= LOOK_AGAIN)
		forget_others(d, level);
}

static void window_end(struct depth *d, const struct depth_answer *a)
{
	unsigned before = d->level;
	unsigned level = window_level(d, a->now_ns);
	double rate = rate_of(d, a->now_ns);

	if (rate <= 0 || rate_changed(d->rate[level], rate)) {
		note_change(d, a);
		return;
	}
	d->odd = false;
	note_rate(d, level, rate);
	d->level = next_level(d, level);
	window_begin(d, a->now_ns);
	if (d->level != before)
		d->skip = depth_limit(d) > a->going ? depth_limit(d) : a->going;
}

/* Returns the new minimum. It rises slowly, because origins change. */
static uint64_t faded(uint64_t least_ns, uint64_t took_ns, unsigned fades)
{
	if (!least_ns || took_ns < least_ns)
		return took_ns;
	return least_ns + least_ns / fades;
}

static void note_latency(struct depth *d, const struct depth_answer *a)
{
	d->least_ns = faded(d->least_ns, a->took_ns, LEAST_FADES);
	if (a->bytes > 0) /* a failure may take less time than any answer */
		atomic_store_explicit(&d->recent_ns,
			faded(depth_recent_ns(d), a->took_ns, RECENT_FADES),
			memory_order_relaxed);
}

/* Is the window complete? If only the latency of the origin limits the rate,
 * requests that are sent together are answered together, so a window ends after
 * a whole number of such groups. */
static bool window_full(const struct depth *d, uint64_t now_ns)
{
	unsigned level, row;

	if (now_ns - d->begin_ns < WINDOW_NS || d->answers < WINDOW_ANSWERS)
		return false;
	level = window_level(d, now_ns);
	row = level == d->level ? depth_limit(d) : 1u << level;
	return d->answers % row == 0;
}

void depth_note(struct depth *d, const struct depth_answer *a)
{
	note_latency(d, a);
	if (!a->more || a->going < depth_limit(d)) {
		d->skip = depth_limit(d);
		return;
	}
	if (d->skip > 0) {
		if (--d->skip == 0)
			window_begin(d, a->now_ns);
		return;
	}
	d->bytes += a->bytes;
	d->took_ns += a->took_ns;
	d->answers++;
	if (window_full(d, a->now_ns))
		window_end(d, a);
}
