/* SPDX-License-Identifier: MIT */
/* Computes the distance between names: Damerau's, as optimal string alignment.
 * No state. */
#include "common/base/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32

static bool near_same(char a, char b)
{
	return (a == '_' ? '-' : a) == (b == '_' ? '-' : b);
}

static unsigned near_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the distance of two names of at most NAME_MAX_BYTES bytes each. */
static unsigned near_distance(
	const char *a, size_t na, const char *b, size_t nb)
{
	unsigned d[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];

	for (size_t i = 0; i <= na; i++)
		d[i][0] = (unsigned)i;
	for (size_t k = 0; k <= nb; k++)
		d[0][k] = (unsigned)k;
	for (size_t i = 1; i <= na; i++)
		for (size_t k = 1; k <= nb; k++) {
			bool same = near_same(a[i - 1], b[k - 1]);

			d[i][k] = near_min(d[i - 1][k - 1] + !same,
				near_min(d[i - 1][k], d[i][k - 1]) + 1);
			if (i > 1 && k > 1 && near_same(a[i - 1], b[k - 2]) &&
				near_same(a[i - 2], b[k - 1]))
				d[i][k] =
					near_min(d[i][k], d[i - 2][k - 2] + 1);
		}
	return d[na][nb];
}

void near_try(struct near *near, const char *name)
{
	size_t len = strlen(name);
	unsigned most = near->len < 4 ? 1
		: near->len < 9	      ? 2
				      : (unsigned)near->len / 3;
	unsigned distance;

	if (!near->len || near->len > NAME_MAX_BYTES || len > NAME_MAX_BYTES)
		return;
	distance = near_distance(near->given, near->len, name, len);
	if (distance > most || (near->best && distance >= near->distance))
		return;
	near->best = name;
	near->distance = distance;
}

const char *near_text(
	const struct near *near, const char *before, char text[NEAR_TEXT_MAX])
{
	text[0] = '\0';
	if (near->best)
		(void)snprintf(text, NEAR_TEXT_MAX, " (did you mean %s%s?)",
			before, near->best);
	return text;
}
