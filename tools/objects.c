/* SPDX-License-Identifier: MIT */
/* Collects the objects of generated pictures and writes them; see objects.h. */
#include "objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct noted_picture {
	uint16_t width, height;
	uint16_t count;
	struct picture_object object[PICTURE_OBJECTS_MAX];
};

struct objects {
	unsigned count;
	struct noted_picture picture[];
};

struct objects *objects_new(unsigned pictures)
{
	struct objects *o =
		calloc(1, sizeof(*o) + pictures * sizeof(o->picture[0]));

	if (o)
		o->count = pictures;
	return o;
}

void objects_free(struct objects *o)
{
	free(o);
}

void objects_note(struct objects *o, unsigned i,
	const struct picture_spec *spec, const struct picture_object *object,
	unsigned count)
{
	struct noted_picture *p = &o->picture[i];

	p->width = (uint16_t)spec->width;
	p->height = (uint16_t)spec->height;
	p->count = (uint16_t)count;
	memcpy(p->object, object, count * sizeof(*object));
}

size_t objects_yolo(
	const struct objects *o, unsigned i, char text[OBJECTS_YOLO_MAX])
{
	const struct noted_picture *p = &o->picture[i];
	size_t n = 0;

	*text = '\0';
	for (unsigned k = 0; k < p->count; k++) {
		const struct picture_object *b = &p->object[k];

		/* Always fits: a picture has at most eight objects, with less
		 * than 60 bytes each. */
		n += (size_t)snprintf(text + n, OBJECTS_YOLO_MAX - n,
			"%u %.9f %.9f %.9f %.9f\n", b->kind,
			(b->x + b->width / 2.0) / p->width,
			(b->y + b->height / 2.0) / p->height,
			(double)b->width / p->width,
			(double)b->height / p->height);
	}
	return n;
}

static void write_images(const struct objects *o, FILE *f)
{
	for (unsigned i = 0; i < o->count; i++)
		fprintf(f,
			"%s\n{\"id\": %u, \"file_name\": \"%08u.jpg\", "
			"\"width\": %u, \"height\": %u}",
			i ? "," : "", i + 1, i + 1, o->picture[i].width,
			o->picture[i].height);
}

static void write_rows(const struct objects *o, FILE *f)
{
	uint64_t id = 0;

	for (unsigned i = 0; i < o->count; i++)
		for (unsigned k = 0; k < o->picture[i].count; k++) {
			const struct picture_object *b =
				&o->picture[i].object[k];

			fprintf(f,
				"%s\n{\"id\": %llu, \"image_id\": %u, "
				"\"category_id\": %u, \"bbox\": [%u, %u, %u, "
				"%u], \"area\": %u, \"iscrowd\": 0}",
				id ? "," : "", (unsigned long long)id + 1,
				i + 1, b->kind + 1, b->x, b->y, b->width,
				b->height, b->pixels);
			id++;
		}
}

int objects_write(const struct objects *o, int dir_fd, unsigned kinds)
{
	int fd = openat(dir_fd, "instances.json",
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int rc;

	if (!f) {
		rc = -errno;
		if (fd >= 0)
			/* cannot lose data: nothing was written */
			(void)close(fd);
		return rc;
	}
	fputs("{\"images\": [", f);
	write_images(o, f);
	fputs("],\n\"annotations\": [", f);
	write_rows(o, f);
	fputs("],\n\"categories\": [", f);
	for (unsigned i = 0; i < kinds; i++)
		fprintf(f, "%s\n{\"id\": %u, \"name\": \"%s\"}", i ? "," : "",
			i + 1, picture_kind(i));
	fputs("]}\n", f);
	rc = ferror(f) ? -EIO : 0;
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	return rc;
}
