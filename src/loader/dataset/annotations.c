/* SPDX-License-Identifier: MIT */
/* Finds rows in annotations; see annotations.h. */
#include "loader/dataset/annotations_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/hash.h"

void annotations_close(struct annotations *a)
{
	if (!a)
		return;
	if (a->map)
		/* cannot fail: this is the range that was mapped */
		(void)munmap(a->map, a->map_bytes);
	for (unsigned i = 0; !a->map && i < ANN_SECTIONS; i++)
		array_release(&a->section[i]);
	free(a);
}

void annotations_totals(
	const struct annotations *a, struct annotations_totals *out)
{
	const struct array *s = a->section;
	size_t bytes = 0;

	for (unsigned i = 0; i < ANN_SECTIONS; i++)
		bytes += array_room_bytes(&s[i]);
	*out = (struct annotations_totals){
		.images = array_count(&s[ANN_IMAGES], sizeof(struct ann_image)),
		.boxes = array_count(&s[ANN_BOXES], sizeof(struct box)),
		.orphans = a->orphans,
		.classes = (uint32_t)array_count(
			&s[ANN_CLASSES], sizeof(struct ann_class)),
		.points = a->points,
		.table_bytes = bytes,
		.private_bytes = sizeof(*a) + (a->map ? 0 : bytes),
	};
}

uint64_t annotations_hash(const struct annotations *a, uint64_t seed)
{
	for (unsigned i = 0; i < ANN_SECTIONS; i++)
		seed = hash64(array_data(&a->section[i]),
			array_bytes(&a->section[i]), seed);
	return seed;
}

const char *annotations_class(const struct annotations *a, uint32_t label)
{
	const struct array *t = &a->section[ANN_CLASSES];
	const struct ann_class *c = array_data(t);

	if (label >= array_count(t, sizeof(*c)))
		return NULL;
	return (const char *)array_data(&a->section[ANN_TEXTS]) + c[label].name;
}

static const struct ann_image *find_image(
	const struct annotations *a, const char *name)
{
	const struct ann_image *image = array_data(&a->section[ANN_IMAGES]);
	const char *texts = array_data(&a->section[ANN_TEXTS]);
	size_t low = 0;
	size_t high = array_count(&a->section[ANN_IMAGES], sizeof(*image));

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(texts + image[mid].name, name);

		if (order == 0)
			return &image[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

int annotations_find(const struct annotations *a, const char *path,
	struct annotation_rows *out)
{
	const struct box *boxes = array_data(&a->section[ANN_BOXES]);
	const float *points = array_data(&a->section[ANN_POINTS]);
	const struct ann_image *image = find_image(a, path);

	while (!image) {
		path = strchr(path, '/');
		if (!path)
			return -ENOENT;
		image = find_image(a, ++path);
	}
	*out = (struct annotation_rows){
		.boxes = boxes ? boxes + image->first : NULL,
		.count = image->count,
		.width = image->width,
		.height = image->height,
		.image = (uint64_t)(image -
			(const struct ann_image *)array_data(
				&a->section[ANN_IMAGES])),
	};
	if (a->points && points)
		out->points = points + 3 * (size_t)a->points * image->first;
	return 0;
}
