/* SPDX-License-Identifier: MIT */
/*
 * How readers spend their time: the times from one file of a thread to its
 * next, as the daemon counts them by length. A reader that waits for its
 * consumer does so once a batch, so its time has short intervals, in which it
 * fetches and prepares, and long ones, in which it waits. Pure functions.
 */
#ifndef STUDY_WAITS_IMPL_H
#define STUDY_WAITS_IMPL_H

#include "analysis/study/study.h"

#define WAITS_LENGTHS 256

/* Sums since the mount started, and differences of them. */
struct waits {
	double count[WAITS_LENGTHS], length_s[WAITS_LENGTHS];
	double ran_s; /* on a processor */
};

/* Read the reply to `rates` with intervals. */
void waits_read(struct waits *w, const json_t *reply);

/* Add to *sum the intervals between two moments. */
void waits_add(
	struct waits *sum, const struct waits *from, const struct waits *to);

/* The result, with n = 0 if there are too few intervals. */
struct profile_waits waits_of(const struct waits *w);

#endif
