/* SPDX-License-Identifier: MIT */
/*
 * Maps the fields of an example to a place in a batch; see make_fields_impl.h.
 * Called by workers, without the lock. No state.
 */
#include <string.h>

#include "loader/core/settings.h"
#include "loader/dataset/annotations.h"
#include "loader/engine/batch.h"
#include "loader/engine/make_fields_impl.h"
#include "loader/fields/map.h"

/* The value of a field, and its place in the batch. */
struct field_place {
	const struct field_def *def;
	const struct field_view *view;
	/* NULL, or `lacks` is set: there is no value */
	const struct field_value *value;
	const void *data; /* the bytes of the value in the block */
	const struct columns *columns;
	unsigned field;
	void *area;
	uint32_t place;
	uint64_t *cut;
};

static void *room_of_rows(const struct field_place *p, unsigned n)
{
	return column_rows(p->columns,
		columns_of_field(p->columns, p->field) + n, p->area, p->place);
}

static void put_rows(const struct field_place *p, uint32_t count, uint32_t cut)
{
	columns_set_rows(p->columns, p->field, p->area, p->place, count);
	*p->cut += cut;
}

/* -- Kinds ----------------------------------------------------------------- */

static void place_boxes(
	const struct field_place *p, const struct box *boxes, uint32_t count)
{
	struct map_out out = {.values = room_of_rows(p, 0),
		.label = room_of_rows(p, 1),
		.which = room_of_rows(p, 2)};

	map_boxes(p->def, p->view, boxes, count, &out);
	put_rows(p, out.count, out.cut);
}

static void place_points(
	const struct field_place *p, const float *points, uint32_t count)
{
	struct map_out out = {
		.values = room_of_rows(p, 0), .which = room_of_rows(p, 1)};

	map_points(p->def, p->view, points, count, &out);
	put_rows(p, out.count, out.cut);
}

static void place_copy(
	const struct field_place *p, size_t row_bytes, uint32_t count)
{
	uint32_t cut =
		map_copy(p->def, p->data, row_bytes, count, room_of_rows(p, 0));

	put_rows(p, count - cut, cut);
}

/* Map a mask. Without a value, no pixel of the sample is in the image, so all
 * become `fill`. */
static int place_mask(const struct field_place *p)
{
	const struct field_value *v = p->value;
	struct field_view view = *p->view;
	struct id_image in = {.id_bytes = 1};

	if (!v || v->lacks)
		view.image_width = view.image_height = 0;
	else
		in = (struct id_image){
			.data = p->data,
			.stride_bytes = v->stride_bytes,
			.id_bytes = v->id_bytes,
			.x = v->region.x,
			.y = v->region.y,
			.width = v->region.width,
			.height = v->region.height,
		};
	return map_mask(p->def, &view, &in, room_of_rows(p, 0));
}

static int place_member(const struct field_place *p)
{
	uint32_t rows = p->value && !p->value->lacks ? p->value->rows : 0;

	switch (p->def->kind) {
	case REFRAIN_KIND_BOXES:
		place_boxes(p, p->data, rows);
		return 0;
	case REFRAIN_KIND_POINTS:
		place_points(p, p->data, rows);
		return 0;
	case REFRAIN_KIND_CLASSES:
		place_copy(p, sizeof(int32_t), rows);
		return 0;
	case REFRAIN_KIND_MASK:
		return place_mask(p);
	case REFRAIN_KIND_BYTES:
		place_copy(p, 1, rows);
		return 0;
	default: /* images and classes are not in the area of columns */
		return 0;
	}
}

/* -- An example ------------------------------------------------------------ */

unsigned fields_boxed(const struct settings *s)
{
	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == REFRAIN_KIND_BOXES)
			return i;
	return FIELDS_MAX;
}

/* Returns the rows of an image; no rows if the annotations do not have it. */
static struct annotation_rows annotated_rows(
	const struct engine_parts *parts, const struct original *o)
{
	struct annotation_rows rows;

	if (annotations_find(dataset_annotations(parts->dataset),
		    o->example.name, &rows) < 0)
		rows = (struct annotation_rows){.count = 0};
	return rows;
}

void fields_boxes(const struct engine_parts *parts, const struct original *o,
	const uint8_t *block, struct picture *pic)
{
	const struct field_value *value = (const void *)block;
	unsigned i = fields_boxed(parts->s);
	struct annotation_rows rows;

	pic->boxes = NULL;
	pic->box_count = 0;
	if (i == FIELDS_MAX || parts->c->augment != REFRAIN_AUGMENT_IOU)
		return;
	if (parts->s->members.of[i] == MEMBER_ANNOTATED) {
		rows = annotated_rows(parts, o);
		pic->boxes = rows.boxes;
		pic->box_count = rows.count;
	} else if (!value[i].lacks) {
		pic->boxes = (const void *)(block + value[i].at);
		pic->box_count = value[i].rows;
	}
}

static int place_field(const struct engine_parts *parts,
	const struct original *o, const struct field_place *p)
{
	struct annotation_rows rows;

	if (parts->s->members.of[p->field] != MEMBER_ANNOTATED)
		return place_member(p);
	rows = annotated_rows(parts, o);
	if (p->def->kind == REFRAIN_KIND_BOXES)
		place_boxes(p, rows.boxes, rows.count);
	else
		place_points(p, rows.points, rows.points ? rows.count : 0);
	return 0;
}

static struct field_view view_of(
	const struct settings *s, const struct refrain_crop *crop)
{
	return (struct field_view){
		.x = crop->x,
		.y = crop->y,
		.width = crop->width,
		.height = crop->height,
		.image_width = crop->image_width,
		.image_height = crop->image_height,
		.sample_width = s->c.width,
		.sample_height = s->c.height,
		.flip = crop->flip & REFRAIN_FLIP_HORIZONTAL,
	};
}

static struct field_place place_in(const struct engine_parts *parts,
	const struct serving *s, const struct field_view *view, unsigned i)
{
	return (struct field_place){
		.def = &parts->s->fields.field[i],
		.view = view,
		.columns = &parts->s->columns,
		.field = i,
		.area = s->step->slab->fields,
		.place = s->place,
	};
}

int fields_map(const struct engine_parts *parts, const struct serving *s,
	const uint8_t *block, uint64_t *cut)
{
	const struct field_value *value = (const void *)block;
	const struct refrain_crop *crop = &s->step->slab->crops[s->place];
	struct field_view view = view_of(parts->s, crop);
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < parts->s->fields.count; i++) {
		struct field_place p = place_in(parts, s, &view, i);

		p.cut = cut;
		if (parts->s->members.of[i] >= 0) {
			p.value = &value[i];
			p.data = block + value[i].at;
		}
		rc = place_field(parts, s->original, &p);
	}
	return rc;
}

void fields_clear(const struct engine_parts *parts, const struct serving *s)
{
	struct refrain_crop crop = {.width = 1, .height = 1};
	struct field_view view = view_of(parts->s, &crop);
	uint64_t cut = 0;

	for (unsigned i = 0; i < parts->s->fields.count; i++) {
		struct field_place p = place_in(parts, s, &view, i);

		p.cut = &cut;
		/* cannot fail without a value */
		(void)place_member(&p);
	}
}

uint32_t fields_length_part(const struct settings *s)
{
	for (unsigned i = 0; i < s->fields.count; i++) {
		int kind = s->fields.field[i].kind;

		if (s->members.of[i] >= 0 &&
			(kind == REFRAIN_KIND_BYTES ||
				kind == REFRAIN_KIND_TOKENS ||
				kind == REFRAIN_KIND_AUDIO ||
				kind == REFRAIN_KIND_ARRAY))
			return (uint32_t)s->members.of[i] + 1;
	}
	return 0;
}
