/* SPDX-License-Identifier: MIT */
/* Segments of a run; see segment_impl.h. */
#include "analyze/segment_impl.h"

#include <math.h>

/* Shares of the segment's limit: at least and at most skipped. */
#define SKIP_LEAST 0.15
#define SKIP_MOST 0.4

/* Blocks that differ by no more are steady. */
#define STEADY 0.05

/* An interval that is small enough to end the segment. */
#define SMALL 0.01

/* Neighbouring blocks depend on each other, means of more do less. */
#define GROUPS 10
#define T_95 2.262 /* Student's, 9 degrees of freedom */

void segment_begin(struct segment *s, const struct counts *now, double seconds)
{
	*s = (struct segment){.seconds = seconds,
		.block_s = seconds / 40,
		.begun = *now,
		.last = *now,
		.block_begun = *now};
	if (s->block_s < 0.05)
		s->block_s = 0.05;
}

static bool is_steady(const struct segment *s, double rate)
{
	return s->before > 0 && fabs(rate / s->before - 1) <= STEADY;
}

static void skip_block(struct segment *s, const struct counts *now, double rate)
{
	double skipped = now->time_s - s->begun.time_s;

	s->measuring = skipped >= SKIP_MOST * s->seconds ||
		(skipped >= SKIP_LEAST * s->seconds && is_steady(s, rate));
	s->before = rate;
	s->first = *now;
}

bool segment_add(struct segment *s, const struct counts *now)
{
	double took = now->time_s - s->block_begun.time_s, rate;
	struct profile_rate r;

	if (took < s->block_s)
		return false;
	rate = (now->samples - s->block_begun.samples) / took;
	s->block_begun = s->last = *now;
	if (!s->measuring) {
		skip_block(s, now, rate);
		return false;
	}
	s->block[s->nblocks++] = rate;
	if (s->nblocks == SEGMENT_BLOCKS_MAX ||
		now->time_s - s->begun.time_s >= s->seconds)
		return true;
	r = segment_rate(s);
	return s->nblocks >= 2 * GROUPS && r.ci <= SMALL * r.value;
}

static double group_mean(const struct segment *s, unsigned group)
{
	unsigned n = s->nblocks / GROUPS;
	double sum = 0;

	for (unsigned i = group * n; i < (group + 1) * n; i++)
		sum += s->block[i];
	return sum / n;
}

struct profile_rate segment_rate(const struct segment *s)
{
	double time_s = s->last.time_s - s->first.time_s;
	double mean = 0, square = 0;
	struct profile_rate r = {0, 0};

	if (time_s <= 0)
		return r;
	r.value = (s->last.samples - s->first.samples) / time_s;
	r.ci = r.value; /* with too few blocks nothing is known */
	if (s->nblocks < GROUPS)
		return r;
	for (unsigned i = 0; i < GROUPS; i++)
		mean += group_mean(s, i) / GROUPS;
	for (unsigned i = 0; i < GROUPS; i++)
		square += pow(group_mean(s, i) - mean, 2) / (GROUPS - 1);
	r.ci = T_95 * sqrt(square / GROUPS);
	return r;
}

double segment_miss(const struct segment *s)
{
	double misses = s->last.misses - s->first.misses;
	double all = misses + s->last.hits - s->first.hits;

	return all > 0 ? misses / all : 0;
}

double segment_gaps(const struct segment *s)
{
	double time_s = s->last.time_s - s->first.time_s;

	return time_s > 0 ? (s->last.idle_s - s->first.idle_s) / time_s : 0;
}
