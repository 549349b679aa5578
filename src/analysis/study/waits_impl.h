/* SPDX-License-Identifier: MIT */
/* How readers spend their time: the times from one file of a thread to its
 * next, as the daemon counts them by length. A reader waits for its consumer
 * once in a batch. So it has short intervals, in which it fetches and prepares,
 * and long ones, in which it waits. Pure functions. */
#ifndef STUDY_WAITS_IMPL_H
#define STUDY_WAITS_IMPL_H

#include "analysis/study/study.h"

#define WAITS_LENGTHS 256

/* Sums since the start of the mount, and differences of such sums. */
struct waits {
	double count[WAITS_LENGTHS], length_s[WAITS_LENGTHS];
	double ran_s; /* time on a processor */
};

/* Read the answer to the command `rates` with intervals. */
void waits_read(struct waits *w, const json_t *reply);

/* Add the intervals between two moments to *sum. */
void waits_add(
	struct waits *sum, const struct waits *from, const struct waits *to);

/* Returns the result; its n is 0 if there are too few intervals. */
struct profile_waits waits_of(const struct waits *w);

#endif
