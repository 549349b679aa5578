/* SPDX-License-Identifier: MIT */
/*
 * The rows of one example: boxes, and with them perhaps points, from a text
 * beside the image. The bytes are not trusted. A struct rows belongs to one
 * thread; its memory grows to the most rows of an example, and is kept.
 */
#ifndef DATASET_ROWS_H
#define DATASET_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/array.h"
#include "common/base/err.h"
#include "loader/image/box.h"

/* Rows of an example, and points of a row. */
#define ROWS_MAX 65536u
#define ROW_POINTS_MAX 64u

/* Zero it to begin. */
struct rows {
	struct array boxes;  /* struct box */
	struct array points; /* float[3 * row_points] of each row */
	uint32_t row_points; /* 0: none */
};

void rows_memory_release(struct rows *r);
size_t rows_memory_bytes(const struct rows *r);
uint32_t rows_count(const struct rows *r);

/*
 * Replace the rows by those of a text in the format of YOLO, one a line: class
 * number, centre x, centre y, width, height, and perhaps x y v of each point,
 * all but the class and v in shares of the image, whose size is given. Returns
 * 0, or -EBADMSG with the line, -E2BIG, -ENOMEM.
 */
int rows_yolo(struct rows *r, const char *text, size_t bytes, uint32_t width,
	uint32_t height, struct error *err);

/*
 * The same from JSON: an array of objects, or an object with such an array as
 * its member "annotations" or "objects". An object has "bbox": [x, y, width,
 * height] in pixels, "category_id" or "label": a number; and perhaps "iscrowd":
 * 0 or 1, and "keypoints": [x, y, v, ...]. Or an object with "boxes": [[x0, y0,
 * x1, y1], ...] and "labels": [n, ...]. Other members are passed over.
 */
int rows_json(
	struct rows *r, const char *text, size_t bytes, struct error *err);

/* Append class numbers (int32_t) to an array: whole numbers that blanks
 * separate, or a JSON array of them. After a failure the array is as before.
 * Returns as rows_yolo(). */
int rows_numbers(
	struct array *out, const char *text, size_t bytes, struct error *err);

struct json_scan;

/* One object of such an array, also of COCO's. */
struct row_object {
	struct box box; /* x1, y1 are width and height until row_finish() */
	uint64_t id, image_id, category;
	bool has_id, has_box, has_category, has_image;
	uint32_t points; /* 0: it has none */
	float point[3 * ROW_POINTS_MAX];
};

/* Take an object; false: malformed. */
bool row_take(struct json_scan *s, struct row_object *out);

/* Check the values and set the corners of the box. Returns NULL, or what is
 * wrong. */
const char *row_finish(struct row_object *o);

#endif
