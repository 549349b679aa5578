/* SPDX-License-Identifier: MIT */
/*
 * The levels of a progressive JPEG: prefixes of the file that have all
 * coefficients of all components, but lack their lowest bits. Such a prefix
 * with an end marker is a smaller file that every decoder reads. Baseline files
 * have no levels.
 */
#ifndef FORMAT_JPEG_LEVELS_H
#define FORMAT_JPEG_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest number of bits that a level may lack. */
#define JPEG_DROP_BITS_MAX 2u

/* Do these bytes begin a JPEG? */
bool jpeg_begins(const void *bytes, size_t n);

/* The bytes that end a JPEG. */
extern const unsigned char jpeg_end_marker[2];

/*
 * Find the levels of a JPEG with n bytes. end[b - 1] gets the length in bytes
 * of the shortest prefix that lacks at most the lowest b bits of each
 * coefficient. It gets 0 if no scan follows that prefix, so that nothing would
 * be saved, or if the file is not a valid progressive JPEG up to there. Reads
 * the markers and no image data (ITU-T T.81, B.2 and G.1).
 */
void jpeg_levels(const void *jpeg, size_t n, uint64_t end[JPEG_DROP_BITS_MAX]);

#endif
