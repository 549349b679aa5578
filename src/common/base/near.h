/* SPDX-License-Identifier: MIT */
/* Finds the known name nearest to a mistyped one. Pure functions; any thread.
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* The caller sets `given` and `len`, and zeroes the rest. */
struct near {
	const char *given; /* the name as typed, of `len` bytes */
	size_t len;
	const char *best; /* the nearest name so far, or NULL */
	unsigned distance;
};

/*
 * Compare a known name with the given one. The known name becomes `best` if
 * fewer letters are wrong, missing, added or swapped with the next one than for
 * all names before it. At most a third of the letters typed may differ, or 2 if
 * that is more; for up to 3 letters, only 1 may differ. '_' and '-' count as
 * equal.
 */
void near_try(struct near *near, const char *name);

/* Write " (did you mean BEFOREbest?)" to `text`, or "" if no name is near
 * enough. Returns `text`. */
#define NEAR_TEXT_MAX 64
const char *near_text(
	const struct near *near, const char *before, char text[NEAR_TEXT_MAX]);

#endif
