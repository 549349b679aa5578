/* SPDX-License-Identifier: MIT */
/*
 * The annotations of a dataset in COCO's JSON: boxes, and perhaps keypoints, of
 * images by their names. The file is read once, in little memory, and a
 * catalogue of it is kept beside the catalogues and mapped, until the file
 * changes. 860,000 boxes take some 30 bytes each. Constant once open: any
 * thread.
 */
#ifndef DATASET_ANNOTATIONS_H
#define DATASET_ANNOTATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/image/box.h"

struct annotations;

/*
 * Open the file `path`. `cache_dir` is where the catalogue is kept; NULL:
 * nowhere. Classes are numbered by the order of the categories' ids. Returns 0,
 * or -ENOENT, -EACCES, -EBADMSG (not COCO's JSON; the message has the byte),
 * -E2BIG (over a limit), -ENOMEM, -errno.
 */
int annotations_open(struct annotations **out, const char *path,
	const char *cache_dir, struct error *err);
void annotations_close(struct annotations *a); /* NULL is allowed */

struct annotations_totals {
	uint64_t images, boxes;
	uint64_t orphans; /* annotations of images that are not listed */
	uint32_t classes;
	uint32_t points;      /* of each row; 0: none */
	size_t table_bytes;   /* mapped or allocated */
	size_t private_bytes; /* allocated */
};
void annotations_totals(
	const struct annotations *a, struct annotations_totals *out);

/* Returns a hash of all images, boxes, points and classes. It reads all of
 * them. */
uint64_t annotations_hash(const struct annotations *a, uint64_t seed);

/* The name of a class, or NULL. */
const char *annotations_class(const struct annotations *a, uint32_t label);

/* The rows of an image, in the order of the file. */
struct annotation_rows {
	const struct box *boxes;
	uint32_t count;
	uint32_t width, height; /* of the image, as the file says */
	const float *points;	/* 3 * totals.points of each; NULL: none */
};

/* Find an image by its path, or by the end of its path behind any slash.
 * Returns 0 or -ENOENT. */
int annotations_find(const struct annotations *a, const char *path,
	struct annotation_rows *out);

#endif
