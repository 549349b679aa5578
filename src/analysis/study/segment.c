/* SPDX-License-Identifier: MIT */
/* Computes the rate in a segment of a run; see segment_impl.h. */
#include "analysis/study/segment_impl.h"

#include <math.h>
#include <stdlib.h>

/* The minimum and the maximum of the beginning that is skipped, as shares of
 * the time limit. */
#define SKIP_LEAST 0.15
#define SKIP_MOST 0.4

/* If the rates of two blocks differ by at most this share, the rate is steady.
 */
#define STEADY 0.05

/* If the interval is at most this share of the rate, the segment ends. */
#define SMALL 0.01

/* Reads that go on for longer than this many blocks are not a burst. */
#define BURST_MOST 5

/* Neighbouring blocks depend on each other, so the interval is computed from
 * means over groups of blocks. */
#define GROUPS 10
#define GROUPS_LEAST 3

/* If a pause is longer than the usual one by more than this factor, it is not
 * part of a step. */
#define LONGER 3

/* If this share of an epoch lies between two pauses, these are not part of
 * steps. */
#define RARELY 0.9

/* If there are at least this many whole epochs, epochs are compared instead of
 * blocks. */
#define EPOCHS_LEAST 4

void segment_begin(struct segment *s, const struct counts *now, double seconds,
	double epoch)
{
	*s = (struct segment){.seconds = seconds,
		.block_s = seconds / 40,
		.epoch = epoch,
		.begun = *now,
		.last = *now,
		.read = *now,
		.burst_s = now->time_s,
		.end = {*now},
		.idle_s = now->idle_s};
	if (s->block_s < 0.05)
		s->block_s = 0.05;
}

static double rate_between(const struct counts *a, const struct counts *b)
{
	return b->time_s > a->time_s
		? (b->samples - a->samples) / (b->time_s - a->time_s)
		: 0;
}

static bool is_steady(const struct segment *s, double rate)
{
	return s->before > 0 && fabs(rate / s->before - 1) <= STEADY;
}

static void skip_block(struct segment *s, const struct counts *now)
{
	double skipped = now->time_s - s->begun.time_s;
	double rate = rate_between(&s->end[0], now);

	s->measuring = skipped >= SKIP_MOST * s->seconds ||
		(skipped >= SKIP_LEAST * s->seconds && is_steady(s, rate));
	s->before = rate;
	s->end[0] = *now;
}

/* Note a pause. The daemon counts it when the next read ends it. */
static void note_pause(struct segment *s, const struct counts *now)
{
	double length_s = now->idle_s - s->idle_s;

	s->idle_s = now->idle_s;
	if (length_s > 0 && s->npauses < SEGMENT_PAUSES_MAX)
		s->pause[s->npauses++] =
			(struct pause){now->time_s, length_s, now->samples};
}

/* Does a block end now? Batches are read in bursts. A block that ended at any
 * moment could contain a part of a batch, and if a segment has few steps, this
 * part is a large error of the rate. So a block ends with a burst if there are
 * bursts, and otherwise at once. s->read is the moment of its end. */
static bool block_ends(struct segment *s, const struct counts *now)
{
	double took_s = now->time_s - s->end[s->nblocks].time_s;
	bool pausing = now->samples <= s->read.samples;
	bool burst_ends = pausing && !s->pausing;

	if (s->pausing && !pausing)
		s->burst_s = now->time_s;
	if (!pausing)
		s->read = *now;
	s->pausing = pausing;
	return took_s >= s->block_s &&
		(burst_ends ||
			(!pausing &&
				now->time_s - s->burst_s >=
					BURST_MOST * s->block_s));
}

bool segment_add(struct segment *s, const struct counts *now)
{
	bool over = now->time_s - s->begun.time_s >= s->seconds;
	struct profile_rate r;

	note_pause(s, now);
	if (!block_ends(s, now))
		return over;
	s->last = s->read;
	if (!s->measuring) {
		skip_block(s, &s->read);
		return over;
	}
	s->end[++s->nblocks] = s->read;
	if (s->nblocks == SEGMENT_BLOCKS_MAX - 1 || over)
		return true;
	r = segment_rate(s);
	return s->nblocks >= 2 * GROUPS && r.ci <= SMALL * r.value;
}

/* -- What was measured ----------------------------------------------------- */

/* Returns the counts at the moment when `samples` had been read since measuring
 * began. */
static struct counts counts_at(const struct segment *s, double samples)
{
	const struct counts *b = s->end, *end = s->end + s->nblocks;
	struct counts n;
	double part;

	samples += b->samples;
	while (b + 1 < end && b[1].samples < samples)
		b++;
	part = b[1].samples > b->samples
		? (samples - b->samples) / (b[1].samples - b->samples)
		: 1;
	n = (struct counts){
		.time_s = b->time_s + part * (b[1].time_s - b->time_s),
		.samples = samples,
		.hits = b->hits + part * (b[1].hits - b->hits),
		.misses = b->misses + part * (b[1].misses - b->misses)};
	return n;
}

/* Returns the counts at the end of the last whole epoch, if there is one: whole
 * epochs begin and end alike, and their misses are exact. */
static struct counts measured_end(const struct segment *s)
{
	double read = s->end[s->nblocks].samples - s->end[0].samples;

	if (s->epoch > 0 && read >= s->epoch)
		return counts_at(s, s->epoch * floor(read / s->epoch));
	return s->end[s->nblocks];
}

/* Returns half of the interval of the mean of n groups, all with the same
 * number of samples. */
static double groups_ci(const struct segment *s, unsigned n, double samples)
{
	/* Student's t for 95 %; the index is the number of degrees of freedom.
	 */
	static const double t_95[] = {0, 12.71, 4.303, 3.182, 2.776, 2.571,
		2.447, 2.365, 2.306, 2.262};
	double mean = 0, square = 0, rate[GROUPS];

	for (unsigned i = 0; i < n; i++) {
		struct counts a = counts_at(s, i * samples);
		struct counts b = counts_at(s, (i + 1) * samples);

		rate[i] = rate_between(&a, &b);
		mean += rate[i] / n;
	}
	for (unsigned i = 0; i < n; i++)
		square += pow(rate[i] - mean, 2) / (n - 1);
	return t_95[n - 1] * sqrt(square / n);
}

struct profile_rate segment_rate(const struct segment *s)
{
	struct counts end = measured_end(s);
	double read = end.samples - s->end[0].samples;
	struct profile_rate r = {rate_between(&s->end[0], &end), 0};
	unsigned epochs, groups = s->nblocks < GROUPS ? s->nblocks : GROUPS;

	r.ci = r.value; /* with too few blocks, the interval is not known */
	if (groups < GROUPS_LEAST || read <= 0)
		return r;
	/* The rate changes within an epoch, so compare whole epochs if there
	 * are enough. */
	epochs = s->epoch > 0 ? (unsigned)fmin(read / s->epoch + 0.01, GROUPS)
			      : 0;
	r.ci = epochs >= EPOCHS_LEAST ? groups_ci(s, epochs, s->epoch)
				      : groups_ci(s, groups, read / groups);
	return r;
}

double segment_miss(const struct segment *s)
{
	struct counts end = measured_end(s);
	double misses = end.misses - s->end[0].misses;
	double all = misses + end.hits - s->end[0].hits;

	return all > 0 ? misses / all : 0;
}

static int by_length(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the usual length of pauses during steps; 0: there are none. */
static double usual_pause(const struct segment *s)
{
	double length_s[SEGMENT_PAUSES_MAX];

	if (s->npauses < 2)
		return 0;
	for (unsigned i = 0; i < s->npauses; i++)
		length_s[i] = s->pause[i].length_s;
	qsort(length_s, s->npauses, sizeof(length_s[0]), by_length);
	return length_s[(s->npauses - 1) / 2];
}

static bool is_gap(const struct segment *s, unsigned i, double usual_s)
{
	double before = i ? s->pause[i - 1].samples : s->begun.samples;

	return s->pause[i].length_s > LONGER * usual_s ||
		(s->epoch > 0 &&
			s->pause[i].samples - before >= RARELY * s->epoch);
}

double segment_gaps(const struct segment *s)
{
	double begin_s = s->end[0].time_s, end_s = measured_end(s).time_s;
	double usual_s = usual_pause(s), gaps_s = 0;

	for (unsigned i = 0; i < s->npauses; i++) {
		const struct pause *p = &s->pause[i];

		if (is_gap(s, i, usual_s))
			gaps_s += fmax(0,
				fmin(p->end_s, end_s) -
					fmax(p->end_s - p->length_s, begin_s));
	}
	return end_s > begin_s ? gaps_s / (end_s - begin_s) : 0;
}
