/* SPDX-License-Identifier: MIT */
/*
 * Draws synthetic photographs of synthetic classes, for datasets that anybody
 * can generate in a minute. A picture depends only on its spec. It is drawn in
 * integers, so it is the same on every machine.
 *
 * The class determines where the frame has light and colour, the direction and
 * pitch of a grating, and the kind and number of shapes. From picture to
 * picture vary the mean colour, the places and colours of the shapes, the
 * brightness and the noise.
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

/* Returns the spec of one picture, with a size as photographs have: most are
 * about 500 x 375, some have a quarter of these pixels, and some several times
 * as many. The mean size of their JPEGs is 110 KB. */
struct picture_spec picture_spec(uint64_t seed, uint64_t index, unsigned class);

/* Draw the picture into rgb[height][width][3]. Returns 0 or -ENOMEM. */
int picture_draw(const struct picture_spec *spec, uint8_t *rgb);

/* -- Objects --------------------------------------------------------------- */

#define PICTURE_OBJECTS_MAX 8
#define PICTURE_KINDS 6

/* An object of a picture: the box around its visible pixels. */
struct picture_object {
	uint16_t kind;
	uint16_t x, y, width, height;
	uint32_t pixels;
};

/* Returns the name of a kind of object. */
const char *picture_kind(unsigned kind);

/*
 * Draw 1 to 8 objects of the first `kinds` kinds. Their sizes are a twelfth to
 * a half of the frame, and the ground does not depend on them.
 * ids[height][width] gets 0 for the ground, and 1 + kind for the object in
 * front. Stores the objects that have a visible pixel. Returns their number, or
 * -ENOMEM.
 */
int picture_draw_objects(const struct picture_spec *spec, unsigned kinds,
	uint8_t *rgb, uint8_t *ids,
	struct picture_object objects[PICTURE_OBJECTS_MAX]);

#endif
