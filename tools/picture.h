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

/* -- Objects --------------------------------------------------------------- */

#define PICTURE_OBJECTS_MAX 8
#define PICTURE_KINDS 6

/* An object of a picture: the box around its pixels that are seen. */
struct picture_object {
	uint16_t kind;
	uint16_t x, y, width, height;
	uint32_t pixels;
};

/* The name of a kind of objects. */
const char *picture_kind(unsigned kind);

/*
 * Draw 1 to 8 objects of the first `kinds` kinds, of sizes from a twelfth to a
 * half of the frame, on a ground that says nothing of them. ids[height][width]
 * is 0 for the ground, and 1 + kind for the object in front. Fills in those of
 * which something is seen, and returns how many, or -ENOMEM.
 */
int picture_draw_objects(const struct picture_spec *spec, unsigned kinds,
	uint8_t *rgb, uint8_t *ids,
	struct picture_object objects[PICTURE_OBJECTS_MAX]);

#endif
