/* SPDX-License-Identifier: MIT */
/* Keeps the findings of refrain doctor. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/doctor_impl.h"

void doctor_find(struct doctor *d, enum doctor_level level, const char *what,
	const char *advice, const char *fmt, ...)
{
	char text[DOCTOR_TEXT_MAX];
	struct doctor_finding f;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long text is cut */
	va_end(ap);
	f = (struct doctor_finding){
		level, strdup(what), strdup(text), strdup(advice)};
	if (!f.what || !f.text || !f.advice ||
		ARRAY_ROOM(d->finding, d->nfindings, &d->room) < 0) {
		free(f.what);
		free(f.text);
		free(f.advice);
		return;
	}
	d->finding[d->nfindings++] = f;
}
