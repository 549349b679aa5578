/* SPDX-License-Identifier: MIT */
/*
 * The annotations of a dataset in COCO's JSON: the boxes, and perhaps the
 * keypoints, of each image. Images are found by their names. The file is parsed
 * once, in little memory. Its tables are then stored as a catalogue, which is
 * mapped by later calls until the file changes. 860,000 boxes take some 30
 * bytes each. After annotations_open() nothing changes, so any thread may read.
 */
#ifndef DATASET_ANNOTATIONS_H
#define DATASET_ANNOTATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/image/box.h"

struct annotations;

/* Open the file `path`. `cache_dir` is the directory of the catalogue; NULL:
 * use none. Classes are numbered in the order of the categories' ids. Returns
 * 0, -ENOENT, -EACCES, -EBADMSG (not JSON of COCO; the message names the byte),
 * -E2BIG (a limit was exceeded), -ENOMEM, or another -errno. */
int annotations_open(struct annotations **out, const char *path,
	const char *cache_dir, struct error *err);
void annotations_close(struct annotations *a); /* NULL is allowed */

struct annotations_totals {
	uint64_t images, boxes;
	/* number of annotations whose image is not in the file */
	uint64_t orphans;
	uint32_t classes;
	uint32_t points;      /* number of points of each row; 0: none */
	size_t table_bytes;   /* size of the tables, mapped or allocated */
	size_t private_bytes; /* size of the allocated tables */
};
void annotations_totals(
	const struct annotations *a, struct annotations_totals *out);

/* Returns a hash of all images, boxes, points and classes. It reads all of
 * them. */
uint64_t annotations_hash(const struct annotations *a, uint64_t seed);

/* Returns the name of a class, or NULL. */
const char *annotations_class(const struct annotations *a, uint32_t label);

/* The rows of an image, in the order of the file. The tables own them. */
struct annotation_rows {
	const struct box *boxes;
	uint32_t count;
	uint32_t width, height; /* size of the image, as the file says */
	/* 3 * totals.points numbers for each row; NULL: none */
	const float *points;
	uint64_t image; /* number of the image, less than totals.images */
};

/* Find an image by its path, or by a part of the path that follows a slash.
 * Returns 0 or -ENOENT. */
int annotations_find(const struct annotations *a, const char *path,
	struct annotation_rows *out);

#endif
