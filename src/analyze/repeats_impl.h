/* SPDX-License-Identifier: MIT */
/*
 * How much the rate of a trainer differs from one time to the next, although
 * nothing was changed: from pairs of measurements of the same thing. Pure.
 */
#ifndef ANALYZE_REPEATS_IMPL_H
#define ANALYZE_REPEATS_IMPL_H

struct repeats {
	double square; /* sum of the variances of log(rate), one a pair */
	unsigned n;    /* pairs */
};

/* Take in two rates, both above 0, of the same thing. */
void repeats_add(struct repeats *r, double first, double second);

/* Half of the interval, as a share of the true rate, that holds 95 % of single
 * measurements. */
double repeats_interval(const struct repeats *r);

#endif
