/* SPDX-License-Identifier: MIT */
/* Parses and writes real numbers. The decimal point is '.' in every locale: a
 * library cannot know which locale a trainer has set. No state; any thread. */
#ifndef BASE_REAL_H
#define BASE_REAL_H

#include <stddef.h>

/* Size of a buffer for any number that real_text() writes. */
#define REAL_TEXT_MAX 16

/* Like strtod(): returns the number at the beginning of `text`, and sets *end
 * to the character after it, or to `text` if there is no number. */
double real_parse(const char *text, char **end);

/* Write `v` as %g does, with up to 6 significant digits. Returns buf. */
const char *real_text(char buf[REAL_TEXT_MAX], double v);

#endif
