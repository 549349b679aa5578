/* SPDX-License-Identifier: MIT */
/*
 * Real numbers as text. The decimal point is '.' whatever locale the program
 * has chosen: a library cannot know what a trainer passed to setlocale(). No
 * state; any thread.
 */
#ifndef BASE_REAL_H
#define BASE_REAL_H

#include <stddef.h>

/* Room for any number that real_text() writes. */
#define REAL_TEXT_MAX 16

/* Like strtod(): returns the number at the beginning of `text`, and sets *end
 * to the character after it, or to `text` if there is no number. */
double real_parse(const char *text, char **end);

/* Write `v` as %g does, with up to 6 significant digits. Returns buf. */
const char *real_text(char buf[REAL_TEXT_MAX], double v);

#endif
