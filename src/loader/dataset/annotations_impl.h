/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of annotations: the tables of the catalogue, which are
 * also its sections in the kept file. See doc/formats.md.
 */
#ifndef DATASET_ANNOTATIONS_IMPL_H
#define DATASET_ANNOTATIONS_IMPL_H

#include "common/base/array.h"
#include "common/base/hash.h"
#include "loader/dataset/annotations.h"

/* Sorted by name. */
struct ann_image {
	uint64_t first; /* row */
	uint32_t count; /* of rows */
	uint32_t name;	/* in ANN_TEXTS */
	uint32_t width, height;
};

struct ann_class {
	uint64_t id;   /* of the category */
	uint32_t name; /* in ANN_TEXTS */
	uint32_t zero;
};

enum ann_section {
	ANN_IMAGES,
	ANN_BOXES, /* of all images, in their order */
	ANN_CLASSES,
	ANN_POINTS, /* floats, as many of each row; or empty */
	ANN_TEXTS,
	ANN_SECTIONS,
};

struct annotations {
	struct array section[ANN_SECTIONS];
	uint64_t orphans;
	uint32_t points;
	void *map; /* NULL: the tables are its own */
	size_t map_bytes;
};

/* The state of the annotated file. */
struct ann_source {
	int64_t mtime_ns;
	uint64_t bytes, inode;
};

/* Fill the tables from a file; annotations_parse.c. */
int annotations_parse(
	struct annotations *a, int fd, const char *path, struct error *err);

/* -- annotations_saved.c --------------------------------------------------- */

/* Map the catalogue of a file, and check it. -errno: parse the file. */
int annotations_map(struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source);
/* Keep it; if that fails, the next process parses again. */
void annotations_keep(const struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source);

#endif
