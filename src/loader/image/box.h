/* SPDX-License-Identifier: MIT */
/* A box of an annotation, as used by crops and fields. There is no code. */
#ifndef IMAGE_BOX_H
#define IMAGE_BOX_H

#include <stdint.h>

/* Bits of struct box.flags. */
#define BOX_CROWD 0x1u /* the box is around a group, not one thing */

/* A box, in pixels of the upright image at full size; (0, 0) is the top left
 * corner of the image. A box may be empty, or extend beyond the image. */
struct box {
	float x0, y0, x1, y1;
	int32_t label;
	uint32_t flags;
};

#endif
