/* SPDX-License-Identifier: MIT */
/* Writes masks as greyscale PNGs of 8 bits. No state; any thread. */
#ifndef TOOLS_MASK_PNG_H
#define TOOLS_MASK_PNG_H

#include <stddef.h>
#include <stdint.h>

/* The ids of all pixels, row by row, as a PNG in memory of malloc(), of *bytes
 * bytes. Runs of one id take hardly any room. NULL if memory is short. */
uint8_t *mask_png(
	const uint8_t *ids, uint32_t width, uint32_t height, size_t *bytes);

#endif
