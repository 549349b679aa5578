/* SPDX-License-Identifier: MIT */
/* The rows of one example, parsed from a text beside the image: boxes, each
 * perhaps with points. The bytes are not trusted. A struct rows belongs to one
 * thread; its memory grows to the largest number of rows of an example, and is
 * kept. */
#ifndef DATASET_ROWS_H
#define DATASET_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/array.h"
#include "common/base/err.h"
#include "loader/image/box.h"

/* Maximum numbers of rows of an example, and of points of a row. */
#define ROWS_MAX 65536u
#define ROW_POINTS_MAX 64u

/* Zero it before its first use. */
struct rows {
	struct array boxes;  /* struct box */
	struct array points; /* float[3 * row_points] for each row */
	uint32_t row_points; /* number of points of each row; 0: none */
	/* Maximum of rows_bytes(), beyond which parsing fails with -E2BIG; 0:
	 * only ROWS_MAX counts. Set it before the rows are parsed. */
	size_t most_bytes;
};

void rows_memory_release(struct rows *r);
/* Returns the size of the allocated memory, used or not. */
size_t rows_memory_bytes(const struct rows *r);
/* Returns the size of the rows alone. */
size_t rows_bytes(const struct rows *r);
uint32_t rows_count(const struct rows *r);

/*
 * Replace the rows by those of a text in the format of YOLO, one in each line:
 * class number, centre x, centre y, width, height, and perhaps x y v for each
 * point. All numbers but the class and v are shares of the image, whose size is
 * given. Returns 0; or -EBADMSG with a message that names the line, -E2BIG or
 * -ENOMEM.
 */
int rows_yolo(struct rows *r, const char *text, size_t bytes, uint32_t width,
	uint32_t height, struct error *err);

/*
 * Like rows_yolo(), but from JSON. The text may be an array of objects, or an
 * object with such an array as its member "annotations" or "objects". Each
 * object has "bbox": [x, y, width, height] in pixels, and a number as
 * "category_id" or "label". It may have "iscrowd": 0, 1, false or true, and
 * "keypoints": [x, y, v, ...]. The text may also be an object with "boxes":
 * [[x0, y0, x1, y1], ...] and "labels": [n, ...]. Other members are ignored,
 * but an object must have exactly one of these arrays.
 */
int rows_json(
	struct rows *r, const char *text, size_t bytes, struct error *err);

/* Append class numbers (int32_t) to an array: whole numbers that blanks
 * separate, or a JSON array of them. After a failure the array is as before.
 * Returns like rows_yolo(). */
int rows_numbers(
	struct array *out, const char *text, size_t bytes, struct error *err);

struct json_scan;

/* One object of the array that rows_json() or COCO's format has. */
struct row_object {
	struct box box; /* until row_finish(), x1 and y1 are width and height */
	uint64_t id, image_id, category;
	bool has_id, has_box, has_category, has_image;
	uint32_t points; /* number of points; 0: none */
	float point[3 * ROW_POINTS_MAX];
};

/* Take an object. Returns false if the object is malformed. */
bool row_take(struct json_scan *s, struct row_object *out);

/* Check the values, and compute the corners of the box. Returns NULL, or a text
 * that says what is wrong. */
const char *row_finish(struct row_object *o);

#endif
