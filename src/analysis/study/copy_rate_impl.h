/* SPDX-License-Identifier: MIT */
/* How the rate of the source changes while it is copied. Disks and file servers
 * with credits for bursts get slower, and some sources get faster because they
 * cache. Pure functions. */
#ifndef STUDY_COPY_RATE_IMPL_H
#define STUDY_COPY_RATE_IMPL_H

#define COPIED_MAX 64

/* The readings. Zero it before its first use. */
struct copied {
	double time_s[COPIED_MAX], bytes[COPIED_MAX];
	unsigned n;
	double each_s; /* minimum time between two readings */
};

/* Add a reading: `bytes` had been copied `time_s` (more than 0) after the
 * beginning. */
void copied_add(struct copied *c, double time_s, double bytes);

/* Returns the rate in the last tenth of the time, as a multiple of the rate in
 * the first tenth; 1 if the copy was too short to tell. */
double copied_change(const struct copied *c);

#endif
