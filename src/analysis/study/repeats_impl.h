/* SPDX-License-Identifier: MIT */
/*
 * How much a trainer's rate varies when nothing is changed, estimated from
 * pairs of measurements of the same setting. Pure functions.
 */
#ifndef STUDY_REPEATS_IMPL_H
#define STUDY_REPEATS_IMPL_H

struct repeats {
	/* sum of the variances of log(rate), one for each pair */
	double square;
	unsigned n; /* number of pairs */
};

/* Add two rates of the same setting, both above 0. */
void repeats_add(struct repeats *r, double first, double second);

/* Returns half of the interval that contains 95 % of single measurements, as a
 * share of the true rate. */
double repeats_interval(const struct repeats *r);

#endif
