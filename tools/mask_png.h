/* SPDX-License-Identifier: MIT */
/* Writes masks as greyscale PNGs of 8 bits. No state; any thread. */
#ifndef TOOLS_MASK_PNG_H
#define TOOLS_MASK_PNG_H

#include <stddef.h>
#include <stdint.h>

/* Make a PNG whose pixels are the ids, row by row. Returns memory of malloc(),
 * with the size in *bytes; NULL if memory is short. Long runs of equal ids need
 * few bytes. */
uint8_t *mask_png(
	const uint8_t *ids, uint32_t width, uint32_t height, size_t *bytes);

#endif
