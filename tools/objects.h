/* SPDX-License-Identifier: MIT */
/* Collects the objects of generated pictures, and writes them as masks, as YOLO
 * lines, and as a COCO JSON file. Any thread may note the objects of a picture,
 * because each picture has its own place in memory. */
#ifndef TOOLS_OBJECTS_H
#define TOOLS_OBJECTS_H

#include <stddef.h>

#include "common/base/err.h"
#include "picture.h"

struct objects;

/* Allocate for this number of pictures. Returns NULL if memory is short. */
struct objects *objects_new(unsigned pictures);
void objects_free(struct objects *o); /* NULL is allowed */

/* Store the objects of picture i. */
void objects_note(struct objects *o, unsigned i,
	const struct picture_spec *spec, const struct picture_object *object,
	unsigned count);

/* Write the YOLO lines of picture i into `text`. Returns their length. */
#define OBJECTS_YOLO_MAX 1024
size_t objects_yolo(
	const struct objects *o, unsigned i, char text[OBJECTS_YOLO_MAX]);

/* Write the objects of all pictures to DIR/instances.json. The categories are
 * the first `kinds` kinds. Returns 0 or -errno. */
int objects_write(const struct objects *o, int dir_fd, unsigned kinds);

#endif
