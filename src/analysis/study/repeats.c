/* SPDX-License-Identifier: MIT */
/* Estimates how much repeated measurements differ; see repeats_impl.h. */
#include "analysis/study/repeats_impl.h"

#include <math.h>

/* The standard deviation of a rate between repetitions on an otherwise idle
 * machine. It counts as one pair, because the two to five measured pairs alone
 * do not say enough. */
#define PRIOR 0.01

void repeats_add(struct repeats *r, double first, double second)
{
	/* The variance of two values is half of the square of their difference.
	 */
	r->square += pow(log(first / second), 2) / 2;
	r->n++;
}

double repeats_interval(const struct repeats *r)
{
	/* Student's t for 95 %; element i is for i + 1 degrees of freedom. */
	static const double t_95[] = {
		12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
	const unsigned last = sizeof(t_95) / sizeof(t_95[0]) - 1;

	return t_95[r->n < last ? r->n : last] *
		sqrt((r->square + PRIOR * PRIOR) / (1 + r->n));
}
