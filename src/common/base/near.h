/* SPDX-License-Identifier: MIT */
/* Finds the known name that a mistyped one is nearest to. Pure; any thread. */
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
 * Compare a known name. It becomes `best` if fewer letters of it are wrong,
 * missing, added or swapped with the next one than of the names before, and at
 * most a third of the letters typed, or 2 if that is more (1 of 3 letters). '_'
 * and '-' are the same.
 */
void near_try(struct near *near, const char *name);

/* For messages: " (did you mean BEFOREbest?)" into `text`, or "". Returns
 * `text`. */
#define NEAR_TEXT_MAX 64
const char *near_text(
	const struct near *near, const char *before, char text[NEAR_TEXT_MAX]);

#endif
