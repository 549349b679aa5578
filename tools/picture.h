/* SPDX-License-Identifier: MIT */
/*
 * Made-up photographs of made-up classes, for datasets that anybody can have
 * in a minute. A picture is a pure function of its spec, on every machine:
 * drawing is done in integers.
 *
 * What makes a class: where light and colour lie in the frame, direction and
 * pitch of a grating, kind and number of the shapes. What does not: mean
 * colour, the shapes' places and colours, brightness and noise, all of which
 * vary from picture to picture.
 */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <stdint.h>

struct picture_spec {
	uint64_t seed; /* of the dataset */
	uint64_t index;
	unsigned class;
	unsigned width, height;
	unsigned quality; /* that a camera would have saved it with */
};

/*
 * The spec of one picture with sizes as photographs have them: most about
 * 500 x 375, some a quarter of that and some several times, 110 KB as JPEG in
 * the mean.
 */
struct picture_spec picture_spec(uint64_t seed, uint64_t index, unsigned class);

/* Draw into rgb[height][width][3]. 0 or -ENOMEM. */
int picture_draw(const struct picture_spec *spec, uint8_t *rgb);

#endif
