/* SPDX-License-Identifier: MIT */
/* Reads the fields for loader-bare; see bare_fields.h. One thread. */
#include "bare_fields.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/dataset/annotations.h"

struct mask_file {
	uint8_t *data;
	size_t bytes;
};

struct bare_fields {
	const struct settings *s;
	const struct dataset *dataset;
	struct decoder *decoder;
	/* files of the masks; NULL: no field is a mask */
	struct mask_file *masks;
	uint64_t n;
	/* number of the field with the mask, or the boxes; FIELDS_MAX: none */
	unsigned mask, boxes;
	struct image_info info; /* header of the mask that was laid out last */
};

_Noreturn static void fail_field(const char *what)
{
	fprintf(stderr, "loader-bare: %s\n", what);
	exit(EXIT_FAILURE);
}

static unsigned field_of_kind(const struct settings *s, int kind)
{
	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == kind)
			return i;
	return FIELDS_MAX;
}

static void read_mask(const struct bare_fields *f, uint64_t index)
{
	uint32_t part = 1 + (uint32_t)f->s->members.of[f->mask];
	struct mask_file *m = &f->masks[index];
	struct example ex;
	struct stat st;
	int fd;

	if (!dataset_part(f->dataset, index, part, &ex))
		fail_field("an example has no mask");
	fd = openat(ex.dir, ex.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		fail_field(ex.file);
	m->bytes = (size_t)st.st_size;
	m->data = malloc(m->bytes);
	if (!m->data || read(fd, m->data, m->bytes) != st.st_size)
		fail_field(ex.file);
	(void)close(fd); /* cannot lose data: the file was only read */
}

struct bare_fields *bare_fields_new(
	const struct settings *s, const struct dataset *ds)
{
	struct decode_limits limits = {.max_pixels = s->c.max_pixels,
		.max_memory_bytes = UINT64_C(1) << 32,
		.max_scans = 500};
	struct bare_fields *f;

	if (!s->fields.count)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f || decoder_new(&f->decoder, &limits) < 0)
		fail_field("out of memory");
	f->s = s;
	f->dataset = ds;
	f->n = dataset_count(ds);
	f->mask = field_of_kind(s, REFRAIN_KIND_MASK);
	f->boxes = field_of_kind(s, REFRAIN_KIND_BOXES);
	if (f->boxes != FIELDS_MAX && !dataset_annotations(ds))
		fail_field("boxes need --annotations here");
	if (f->mask == FIELDS_MAX)
		return f;
	f->masks = calloc(f->n, sizeof(*f->masks));
	if (!f->masks)
		fail_field("out of memory");
	for (uint64_t i = 0; i < f->n; i++)
		read_mask(f, i);
	return f;
}

void bare_fields_free(struct bare_fields *f)
{
	if (!f)
		return;
	for (uint64_t i = 0; f->masks && i < f->n; i++)
		free(f->masks[i].data);
	free(f->masks);
	decoder_free(f->decoder);
	free(f);
}

size_t bare_fields_lay_out(struct bare_fields *f, uint64_t index,
	const struct rect *region, struct image *ids)
{
	const struct mask_file *m;
	struct error err;

	if (!f || !f->masks)
		return 0;
	m = &f->masks[index];
	if (decode_probe(f->decoder, m->data, m->bytes, &f->info, &err) < 0)
		fail_field(err.msg);
	return decode_ids_layout(&f->info, region, ids);
}

void bare_fields_decode(
	struct bare_fields *f, uint64_t index, struct image *ids)
{
	const struct mask_file *m;
	struct error err;

	if (!f || !f->masks)
		return;
	m = &f->masks[index];
	if (decode_ids(f->decoder, m->data, m->bytes, &f->info, ids, &err) < 0)
		fail_field(err.msg);
}

static void place_boxes_bare(const struct bare_fields *f, uint64_t index,
	const struct field_view *view, void *area, uint32_t place)
{
	const struct columns *c = &f->s->columns;
	const struct column *first = columns_of_field(c, f->boxes);
	struct map_out out = {
		.values = column_rows(c, first, area, place),
		.label = column_rows(c, first + 1, area, place),
		.which = column_rows(c, first + 2, area, place),
	};
	struct annotation_rows rows;
	struct example ex;

	dataset_example(f->dataset, index, &ex);
	if (annotations_find(dataset_annotations(f->dataset), ex.name, &rows) <
		0)
		fail_field(ex.name);
	map_boxes(&f->s->fields.field[f->boxes], view, rows.boxes, rows.count,
		&out);
	columns_set_rows(c, f->boxes, area, place, out.count);
}

void bare_fields_map(const struct bare_fields *f, uint64_t index,
	const struct image *ids, const struct field_view *view, void *area,
	uint32_t place)
{
	const struct columns *c;
	struct id_image in;

	if (!f)
		return;
	c = &f->s->columns;
	if (f->boxes != FIELDS_MAX)
		place_boxes_bare(f, index, view, area, place);
	if (!f->masks)
		return;
	in = (struct id_image){
		.data = ids->data,
		.stride_bytes = ids->stride_bytes,
		.id_bytes = (unsigned)(ids->stride_bytes / ids->width),
		.x = ids->x,
		.y = ids->y,
		.width = ids->width,
		.height = ids->height,
	};
	if (map_mask(&f->s->fields.field[f->mask], view, &in,
		    column_rows(c, columns_of_field(c, f->mask), area, place)) <
		0)
		fail_field("a mask cannot be mapped");
}
