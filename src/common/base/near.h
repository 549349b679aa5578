/* SPDX-License-Identifier: MIT */
/* Finds the known name nearest to a mistyped one. Pure functions; any thread.
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* Initialise `given` and `len`, and zero the rest. */
struct near {
	const char *given; /* the name as typed, of `len` bytes */
	size_t len;
	const char *best; /* the nearest name so far, or NULL */
	unsigned distance;
};

/*
 * Compare a known name with the given one. The name becomes `best` if fewer of
 * its letters are wrong, missing, added or swapped with the next one than in
 * any earlier name. The limit is a third of the letters typed, or 2 if that is
 * more, but only 1 for up to 3 letters. '_' and '-' count as equal.
 */
void near_try(struct near *near, const char *name);

/* Write " (did you mean BEFOREbest?)" to `text`, or "" if there is no such
 * name. Returns `text`. */
#define NEAR_TEXT_MAX 64
const char *near_text(
	const struct near *near, const char *before, char text[NEAR_TEXT_MAX]);

#endif
