/* SPDX-License-Identifier: MIT */
/* The rate of a source while it was copied; see copy_rate_impl.h. */
#include "analysis/study/copy_rate_impl.h"

/* The minimum time of a copy, in seconds. In a tenth of a shorter one, there
 * are too few readings. */
#define LEAST_S 5

static void drop_every_second(struct copied *c)
{
	for (unsigned i = 0; i < COPIED_MAX / 2; i++) {
		c->time_s[i] = c->time_s[2 * i + 1];
		c->bytes[i] = c->bytes[2 * i + 1];
	}
	c->n = COPIED_MAX / 2;
	c->each_s = 2 * c->time_s[c->n - 1] / COPIED_MAX;
}

void copied_add(struct copied *c, double time_s, double bytes)
{
	unsigned last = c->n - 1;

	if (bytes <= 0 ||
		(c->n > 0 &&
			(bytes <= c->bytes[last] ||
				time_s < c->time_s[last] + c->each_s)))
		return;
	if (c->n == COPIED_MAX)
		drop_every_second(c);
	c->time_s[c->n] = time_s;
	c->bytes[c->n++] = bytes;
}

static double bytes_at(const struct copied *c, double time_s)
{
	double was_s = 0, was = 0;
	unsigned i = 0;

	for (; c->time_s[i] < time_s; i++) {
		was_s = c->time_s[i];
		was = c->bytes[i];
	}
	return was +
		(c->bytes[i] - was) * (time_s - was_s) / (c->time_s[i] - was_s);
}

double copied_change(const struct copied *c)
{
	double end_s = c->n > 0 ? c->time_s[c->n - 1] : 0;
	double first, last;

	if (end_s < LEAST_S)
		return 1;
	first = bytes_at(c, 0.1 * end_s);
	last = c->bytes[c->n - 1] - bytes_at(c, 0.9 * end_s);
	return first > 0 ? last / first : 1;
}
