/* SPDX-License-Identifier: MIT */
/*
 * The depth of surplus requests, by trying: a window of answers measures the
 * rate of one level. As long as each level brings more, the next is tried, so
 * that a distant origin has its depth after some ten times what a request
 * takes; then the lowest level that is good enough is kept. Lower ones are
 * tried when requests wait for one another, higher ones every now and then,
 * for origins change. A pure state machine.
 */
#include "cache/depth_impl.h"

#include "base/clock.h"

/* A window is over when it is long enough and has enough answers. */
#define WINDOW_NS (100 * NS_PER_MS)
#define WINDOW_ANSWERS 8u

/* Windows at a level before a higher one is tried again, and so many times
 * that before a lower one is without a reason. */
#define LOOK_AGAIN 32u
#define LOOK_DOWN 8u

/*
 * A level is good enough if it lacks no more than this of the best rate. Of
 * the 5 % that may be lost something is left for what else takes time.
 */
#define LACK_MAX 0.03

/* Where requests take so much longer than they could, fewer may do. */
#define WAITING 1.3

#define LEVEL_FIRST 2u

void depth_init(struct depth *d, unsigned most)
{
	*d = (struct depth){.most = most ? most : 1};
	while (d->level < LEVEL_FIRST && 1u << d->level < d->most)
		d->level++;
	d->skip = depth_limit(d);
}

unsigned depth_limit(const struct depth *d)
{
	unsigned limit = 1u << d->level;

	return limit < d->most ? limit : d->most;
}

uint64_t depth_latency_ns(const struct depth *d)
{
	return d->least_ns;
}

static bool has_above(const struct depth *d)
{
	return d->level + 1 < DEPTH_LEVELS && depth_limit(d) < d->most;
}

static bool known(const struct depth *d, unsigned level)
{
	return d->rate[level].all > 0;
}

bool depth_settled(const struct depth *d)
{
	return known(d, d->level) && (!has_above(d) || known(d, d->level + 1));
}

static unsigned best_level(const struct depth *d)
{
	unsigned best = d->level;

	for (unsigned i = 0; i < DEPTH_LEVELS; i++)
		if (d->rate[i].all > d->rate[best].all)
			best = i;
	return best;
}

/*
 * Readers share the origin: more surplus that only takes their part of it is
 * no gain, but neither is a gain of surplus to be overlooked beside them. So
 * all that came is compared, and what surplus alone had says how much matters.
 */
static unsigned lowest_good(const struct depth *d)
{
	const struct depth_rate *best = &d->rate[best_level(d)];
	unsigned i = 0;

	while (!known(d, i) ||
		d->rate[i].all < best->all - LACK_MAX * best->surplus)
		i++;
	return i;
}

/* Do its requests wait for one another? */
static bool crowded(const struct depth *d)
{
	return (double)d->took_ns / d->answers > WAITING * (double)d->least_ns;
}

/*
 * Where to go after a window: up while that is unknown and each level was
 * better than the one before; then down to the lowest that is good enough, and
 * further while that is unknown.
 */
static unsigned next_level(const struct depth *d)
{
	unsigned good = lowest_good(d);

	if (good == d->level && has_above(d) && !known(d, good + 1))
		return good + 1;
	if (good == d->level && good > 0 && !known(d, good - 1))
		return good - 1;
	return good;
}

/* Time to look at the neighbours again. */
static void forget_others(struct depth *d)
{
	bool all = ++d->rounds >= LOOK_DOWN || crowded(d);

	d->windows = 0;
	if (all)
		d->rounds = 0;
	for (unsigned i = all ? 0 : d->level + 1; i < DEPTH_LEVELS; i++)
		if (i != d->level)
			d->rate[i] = (struct depth_rate){0, 0};
}

static void note_rate(struct depth *d, uint64_t now_ns)
{
	double s = (double)(now_ns - d->begin_ns) / (double)NS_PER_S;
	struct depth_rate *r = &d->rate[d->level];
	double all = (double)d->bytes / s;
	double surplus = (double)d->surplus_bytes / s;

	if (r->all > 0) {
		all = (r->all + all) / 2;
		surplus = (r->surplus + surplus) / 2;
	}
	*r = (struct depth_rate){all, surplus};
}

static void window_begin(struct depth *d, uint64_t now_ns)
{
	d->begin_ns = now_ns;
	d->bytes = d->surplus_bytes = d->took_ns = 0;
	d->answers = 0;
}

static void window_end(struct depth *d, uint64_t now_ns)
{
	unsigned before = d->level;

	note_rate(d, now_ns);
	if (++d->windows >= LOOK_AGAIN)
		forget_others(d);
	d->level = next_level(d);
	window_begin(d, now_ns);
	if (d->level != before)
		d->skip = 1u << (d->level > before ? d->level : before);
}

/* It came so quickly once; that fades, for origins change. */
static void note_latency(struct depth *d, uint64_t took_ns)
{
	if (!d->least_ns || took_ns < d->least_ns)
		d->least_ns = took_ns;
	else
		d->least_ns += d->least_ns / 1024;
}

/* All that go at a time come at a time where nothing but latency counts. */
static bool window_full(const struct depth *d, uint64_t now_ns)
{
	return now_ns - d->begin_ns >= WINDOW_NS &&
		d->answers >= WINDOW_ANSWERS &&
		d->answers % depth_limit(d) == 0;
}

void depth_note(struct depth *d, const struct depth_answer *a)
{
	if (a->surplus)
		note_latency(d, a->took_ns);
	if (!a->busy) {
		d->skip = depth_limit(d);
		return;
	}
	if (d->skip > 0) {
		if (a->surplus && --d->skip == 0)
			window_begin(d, a->now_ns);
		return;
	}
	d->bytes += a->bytes;
	if (!a->surplus)
		return;
	d->surplus_bytes += a->bytes;
	d->took_ns += a->took_ns;
	d->answers++;
	if (window_full(d, a->now_ns))
		window_end(d, a->now_ns);
}
