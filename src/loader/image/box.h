/* SPDX-License-Identifier: MIT */
/* A box of an annotation, as the crops and the fields use it. No code. */
#ifndef IMAGE_BOX_H
#define IMAGE_BOX_H

#include <stdint.h>

/* Bits of struct box.flags. */
#define BOX_CROWD 0x1u /* around many things: not one of them */

/* In pixels of the upright image at full size; (0, 0) is its top left corner.
 * A box may be empty, or exceed the image. */
struct box {
	float x0, y0, x1, y1;
	int32_t label;
	uint32_t flags;
};

#endif
