/* SPDX-License-Identifier: MIT */
/* Rows of measured values. No state. */
#include "loader/engine/auto_impl.h"

#include <math.h>
#include <string.h>

/* Returns the mean without the `out` lowest and the `out` highest values. */
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

/* Are the last n values above all earlier values, and above the median of these
 * times `factor`? If `sign` is -1: are they below all earlier values, and below
 * the median? */
static bool row_left(
	const struct auto_row *r, uint32_t n, double factor, double sign)
{
	struct auto_row before = *r;
	double edge;

	if (r->n <= n)
		return false;
	before.n -= n;
	edge = sign * factor * row_middle(&before);
	for (uint32_t i = 0; i < before.n; i++)
		edge = fmax(edge, sign * r->v[i]);
	for (uint32_t i = before.n; i < r->n; i++)
		if (sign * r->v[i] <= edge)
			return false;
	return true;
}

bool row_fell(const struct auto_row *r, uint32_t n, double by)
{
	return row_left(r, n, 1 / by, -1);
}

bool row_rose(const struct auto_row *r, uint32_t n, double by)
{
	return row_left(r, n, by, 1);
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
