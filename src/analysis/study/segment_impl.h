/* SPDX-License-Identifier: MIT */
/* One segment of a run: the rate of the trainer while no setting changes. The
 * beginning of a segment is skipped, because the trainer still has samples from
 * before. Pure functions; the caller passes readings of the counters. */
#ifndef STUDY_SEGMENT_IMPL_H
#define STUDY_SEGMENT_IMPL_H

#include <stdbool.h>

#include "analysis/study/study.h"

/* Sums since the start of the mount. */
struct counts {
	double time_s, samples, bytes, hits, misses, idle_s, tiny, starved_s,
		cpu_s;
	double readers; /* number of readers at this moment; 0: not known */
	bool refused;	/* a loader wanted to read without the mount */
};

#define SEGMENT_BLOCKS_MAX 256
#define SEGMENT_PAUSES_MAX 64

/* A time without reads. */
struct pause {
	double end_s, length_s;
	double samples; /* number of samples read before it */
};

struct segment {
	double seconds; /* maximum length of the segment */
	double block_s;
	double epoch; /* number of samples in an epoch */
	struct counts begun, last;
	struct counts read; /* counts at the last look that found new reads */
	/* counts at the end of each block; [0]: when measuring began */
	struct counts end[SEGMENT_BLOCKS_MAX];
	unsigned nblocks;
	struct pause pause[SEGMENT_PAUSES_MAX];
	unsigned npauses;
	double idle_s; /* idle time at the last look */
	double before; /* rate of the last skipped block */
	bool measuring;
	bool pausing;	/* the last look found no new reads */
	double burst_s; /* time at which the burst began; 0: there is none */
};

void segment_begin(struct segment *s, const struct counts *now, double seconds,
	double epoch);

/* Add the counts of a later moment. Returns true if the segment is complete. */
bool segment_add(struct segment *s, const struct counts *now);

/* Returns the rate over the measured part. */
struct profile_rate segment_rate(const struct segment *s);

/* Returns the share of misses. */
double segment_miss(const struct segment *s);

/* Returns the share of the time in pauses such as those between epochs. Pauses
 * during steps do not count: these have similar lengths, and there are several
 * in an epoch. */
double segment_gaps(const struct segment *s);

#endif
