/* SPDX-License-Identifier: MIT */
/*
 * One segment of a run: the rate of the trainer while nothing is changed. Its
 * beginning is skipped, because the trainer still holds samples from before.
 * Pure functions; the caller passes in readings of the counters.
 */
#ifndef STUDY_SEGMENT_IMPL_H
#define STUDY_SEGMENT_IMPL_H

#include <stdbool.h>

#include "analysis/study/study.h"

/* Sums since the mount started. */
struct counts {
	double time_s, samples, bytes, hits, misses, idle_s, tiny, starved_s,
		cpu_s;
	double readers; /* number of readers at this moment; 0: unknown */
	bool refused;	/* a loader wanted to read past the mount */
};

#define SEGMENT_BLOCKS_MAX 256
#define SEGMENT_PAUSES_MAX 64

/* A time without reads. */
struct pause {
	double end_s, length_s;
	double samples; /* number of samples read before it */
};

struct segment {
	double seconds; /* limit of the segment's length */
	double block_s;
	double epoch; /* samples of an epoch */
	struct counts begun, last;
	struct counts read; /* counts at the last look that saw reads */
	/* counts at the ends of blocks; [0]: when measuring began */
	struct counts end[SEGMENT_BLOCKS_MAX];
	unsigned nblocks;
	struct pause pause[SEGMENT_PAUSES_MAX];
	unsigned npauses;
	double idle_s; /* idle time at the last look */
	double before; /* rate of the last skipped block */
	bool measuring;
	bool pausing;	/* the last look saw no reads */
	double burst_s; /* when the burst began, if it has not ended */
};

void segment_begin(struct segment *s, const struct counts *now, double seconds,
	double epoch);

/* Add the counts of a later moment. Returns true if the segment is complete. */
bool segment_add(struct segment *s, const struct counts *now);

/* The rate over the measured part. */
struct profile_rate segment_rate(const struct segment *s);

/* Share of misses. */
double segment_miss(const struct segment *s);

/* The share of time in pauses such as those between epochs. Pauses during steps
 * do not count: they have similar lengths, and come several times an epoch. */
double segment_gaps(const struct segment *s);

#endif
