/* SPDX-License-Identifier: MIT */
/*
 * Draws synthetic photographs of synthetic classes, for datasets that anybody
 * can generate in a minute. A picture is a pure function of its spec on every
 * machine, as it is drawn in integers.
 *
 * A class determines the places of light and colour in the frame, the direction
 * and pitch of a grating, and the kind and number of shapes. The mean colour,
 * the places and colours of the shapes, the brightness and the noise vary from
 * picture to picture.
 */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <stdint.h>

struct picture_spec {
	uint64_t seed; /* seed of the dataset */
	uint64_t index;
	unsigned class;
	unsigned width, height;
	unsigned quality; /* JPEG quality, as a camera would choose it */
};

/*
 * The spec of one picture, with a size like those of photographs: most are
 * about 500 x 375, some a quarter of that, some several times that; 110 KB as
 * JPEG on average.
 */
struct picture_spec picture_spec(uint64_t seed, uint64_t index, unsigned class);

/* Draw into rgb[height][width][3]. Returns 0 or -ENOMEM. */
int picture_draw(const struct picture_spec *spec, uint8_t *rgb);

#endif
