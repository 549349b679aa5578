/* SPDX-License-Identifier: MIT */
/* Opens annotations and finds rows in them; see annotations.h. */
#include "loader/dataset/annotations_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

static struct ann_source source_of_file(const struct stat *st)
{
	return (struct ann_source){
		.mtime_ns =
			clock_file_ns(st->st_mtim.tv_sec, st->st_mtim.tv_nsec),
		.bytes = (uint64_t)st->st_size,
		.inode = st->st_ino,
	};
}

/* Map the catalogue, or make one. */
static int fill_annotations(struct annotations *a, int fd, const char *path,
	const char *cache_dir, struct error *err)
{
	CLEANUP_FREE char *real = realpath(path, NULL);
	struct ann_source source;
	struct hash128 key;
	struct stat st;
	int rc;

	if (!real || fstat(fd, &st) < 0)
		return error_set(err, -errno, "cannot open '%s': %m", path);
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, -EINVAL, "'%s' is not a regular file", path);
	source = source_of_file(&st);
	key = hash128(real, strlen(real));
	if (cache_dir && annotations_map(a, cache_dir, key, &source) == 0)
		return 0;
	rc = annotations_parse(a, fd, path, err);
	if (rc == 0 && cache_dir)
		annotations_keep(a, cache_dir, key, &source);
	return rc;
}

int annotations_open(struct annotations **out, const char *path,
	const char *cache_dir, struct error *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct annotations *a = calloc(1, sizeof(*a));
	int rc;

	*out = NULL;
	if (!a)
		return error_set(err, -ENOMEM, "%m");
	rc = fd < 0 ? error_set(err, -errno, "cannot open '%s': %m", path)
		    : fill_annotations(a, fd, path, cache_dir, err);
	if (rc < 0) {
		annotations_close(a);
		return rc;
	}
	*out = a;
	return 0;
}

void annotations_close(struct annotations *a)
{
	if (!a)
		return;
	if (a->map)
		(void)munmap(a->map, a->map_bytes); /* as it was mapped */
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
	};
	if (a->points && points)
		out->points = points + 3 * (size_t)a->points * image->first;
	return 0;
}
