/* SPDX-License-Identifier: MIT */
/* The tables of the catalogue of annotations, which are also its sections in
 * the file of the catalogue (doc/formats.md), and the functions of its files.
 */
#ifndef DATASET_ANNOTATIONS_IMPL_H
#define DATASET_ANNOTATIONS_IMPL_H

#include "common/base/array.h"
#include "common/base/hash.h"
#include "loader/dataset/annotations.h"

/* An image. The table is sorted by name. */
struct ann_image {
	uint64_t first; /* index of its first row */
	uint32_t count; /* number of its rows */
	uint32_t name;	/* offset in ANN_TEXTS */
	uint32_t width, height;
};

struct ann_class {
	uint64_t id;   /* id of the category */
	uint32_t name; /* offset in ANN_TEXTS */
	uint32_t zero;
};

enum ann_section {
	ANN_IMAGES,
	ANN_BOXES, /* boxes of all images, in the order of the images */
	ANN_CLASSES,
	ANN_POINTS, /* floats, the same number for each row; may be empty */
	ANN_TEXTS,
	ANN_SECTIONS,
};

struct annotations {
	struct array section[ANN_SECTIONS];
	uint64_t orphans;
	uint32_t points;
	void *map; /* the mapping; NULL: the tables are allocated */
	size_t map_bytes;
};

/* Size, times and inode of the annotated file, which show whether it has
 * changed. */
struct ann_source {
	int64_t mtime_ns;
	uint64_t bytes, inode;
};

/* Fill the tables from a file; in annotations_parse.c. */
int annotations_parse(
	struct annotations *a, int fd, const char *path, struct error *err);

/* -- annotations_saved.c --------------------------------------------------- */

/* Map the catalogue of a file, and check it. Returns 0, or -errno if the file
 * must be parsed. */
int annotations_map(struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source);
/* Write the catalogue. If this fails, the next process parses the file again.
 */
void annotations_keep(const struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source);

#endif
