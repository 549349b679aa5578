/* SPDX-License-Identifier: MIT */
/* Rows of measured values. */
#include "auto/auto_impl.h"

#include <math.h>
#include <string.h>

/* The mean without so many of the lowest, and as many of the highest. */
static double inner_mean(const struct auto_row *r, uint32_t out)
{
	double v[AUTO_PARTS] = {0}, sum = 0;

	if (r->n == 0)
		return 0;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = i;

		for (; at > 0 && v[at - 1] > r->v[i]; at--)
			v[at] = v[at - 1];
		v[at] = r->v[i];
	}
	for (uint32_t i = out; i < r->n - out; i++)
		sum += v[i];
	return sum / (r->n - 2 * out);
}

double row_mean(const struct auto_row *r)
{
	return inner_mean(r, 0);
}

double row_middle_half(const struct auto_row *r)
{
	return inner_mean(r, (r->n + 1) / 4);
}

double row_middle(const struct auto_row *r)
{
	return inner_mean(r, r->n ? (r->n - 1) / 2 : 0);
}

/* All but the last n, and their extremes. */
static struct auto_row but_last(
	const struct auto_row *r, uint32_t n, double *least, double *most)
{
	struct auto_row before = *r;

	before.n -= n;
	*least = INFINITY;
	*most = 0;
	for (uint32_t i = 0; i < before.n; i++) {
		*least = fmin(*least, r->v[i]);
		*most = fmax(*most, r->v[i]);
	}
	return before;
}

bool row_fell(const struct auto_row *r, uint32_t n, double by)
{
	struct auto_row before;
	double least, most;

	if (r->n <= n)
		return false;
	before = but_last(r, n, &least, &most);
	least = fmin(least, row_middle(&before) / by);
	for (uint32_t i = before.n; i < r->n; i++)
		if (r->v[i] >= least)
			return false;
	return true;
}

bool row_rose(const struct auto_row *r, uint32_t n, double by)
{
	struct auto_row before;
	double least, most;

	if (r->n <= n)
		return false;
	before = but_last(r, n, &least, &most);
	most = fmax(most, row_middle(&before) * by);
	for (uint32_t i = before.n; i < r->n; i++)
		if (r->v[i] <= most)
			return false;
	return true;
}

void row_keep(struct auto_row *r, uint32_t n)
{
	memmove(r->v, r->v + r->n - n, n * sizeof(r->v[0]));
	r->n = n;
}

void row_add(struct auto_row *r, double v)
{
	if (r->n == AUTO_PARTS)
		row_keep(r, AUTO_PARTS - 1);
	r->v[r->n++] = v;
}
