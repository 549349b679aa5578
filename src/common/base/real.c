/* SPDX-License-Identifier: MIT */
/* Parses and writes real numbers in the locale "C". */
#include "common/base/real.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Switch this thread to the locale "C". Returns the locale for real_leave().
 * newlocale() cannot fail here, because it needs no memory for "C". */
static locale_t real_enter(locale_t *before)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	*before = uselocale(c);
	return c;
}

static void real_leave(locale_t c, locale_t before)
{
	(void)uselocale(before);
	if (c)
		freelocale(c);
}

double real_parse(const char *text, char **end)
{
	locale_t before, c = real_enter(&before);
	double v = strtod(text, end);

	real_leave(c, before);
	return v;
}

const char *real_text(char buf[REAL_TEXT_MAX], double v)
{
	locale_t before, c = real_enter(&before);

	(void)snprintf(buf, REAL_TEXT_MAX, "%g", v);
	real_leave(c, before);
	return buf;
}
