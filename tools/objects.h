/* SPDX-License-Identifier: MIT */
/*
 * The truth about generated pictures of objects: masks, lines of YOLO, and a
 * file of COCO's JSON. Any thread may note a picture; each has its own place.
 */
#ifndef TOOLS_OBJECTS_H
#define TOOLS_OBJECTS_H

#include <stddef.h>

#include "common/base/err.h"
#include "picture.h"

struct objects;

/* For so many pictures. NULL if memory is short. */
struct objects *objects_new(unsigned pictures);
void objects_free(struct objects *o); /* NULL is allowed */

/* Note the objects of picture i. */
void objects_note(struct objects *o, unsigned i,
	const struct picture_spec *spec, const struct picture_object *object,
	unsigned count);

/* The lines of YOLO of picture i, in text. Returns the bytes. */
#define OBJECTS_YOLO_MAX 1024
size_t objects_yolo(
	const struct objects *o, unsigned i, char text[OBJECTS_YOLO_MAX]);

/* Write all as DIR/instances.json, with the first `kinds` kinds as categories.
 * Returns 0 or -errno. */
int objects_write(const struct objects *o, int dir_fd, unsigned kinds);

#endif
