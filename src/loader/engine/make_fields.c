/* SPDX-License-Identifier: MIT */
/*
 * Loads the fields of an example into a block; see make_fields_impl.h. A block
 * begins with a struct field_value for each field. Called by workers, without
 * the lock.
 */
#include "loader/engine/make_fields_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/core/settings.h"
#include "loader/dataset/annotations.h"
#include "loader/dataset/rows.h"
#include "loader/image/decode.h"

/* alignment of decoded ids, and of all values */
#define BLOCK_ALIGN 64
/* The rows of an example may take this part of the memory of the loader. */
#define ROWS_SHARE 16
/* A worker keeps no more memory of rows than this between examples. */
#define ROWS_KEPT_MAX ((uint64_t)64 << 10)

/* The bytes of a member within the encoded data. `data` is NULL if the example
 * does not have the member. */
struct part_view {
	const uint8_t *data;
	size_t bytes;
};

struct field_maker {
	const struct engine_parts *parts;
	const struct settings *s;
	/* decoder of masks; NULL: no field is a mask */
	struct decoder *decoder;
	/* int32_t numbers of all fields of kind class numbers */
	struct array numbers;
	/* The rows of each member. Rows of a member that is not `parsed` are
	 * those of an earlier original. */
	struct rows rows[DATASET_PARTS_MAX];
	uint32_t parsed;
	/* memory of rows and numbers before the original was loaded */
	uint64_t held_before;
	/* the members of the original that was loaded last */
	struct part_view part[DATASET_PARTS_MAX];
	struct image_info mask[FIELDS_MAX];
	struct field_value value[FIELDS_MAX];
	uint32_t width, height; /* size of the upright image */
};

static size_t block_aligned(size_t bytes)
{
	return (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

uint8_t *fields_block(
	const struct engine_parts *parts, uint8_t *base, size_t bytes)
{
	return *parts->s->members.text ? base + block_aligned(bytes) : NULL;
}

size_t fields_behind(size_t bytes, size_t block_bytes)
{
	return block_bytes ? block_aligned(bytes) + block_bytes : bytes;
}

/* -- Creation and end ------------------------------------------------------ */

static bool has_masks(const struct settings *s)
{
	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == REFRAIN_KIND_MASK)
			return true;
	return false;
}

int field_maker_new(struct field_maker **out, const struct engine_parts *parts)
{
	struct decode_limits limits = sample_limits(parts->s);
	struct field_maker *f;

	*out = NULL;
	if (!parts->s->fields.count)
		return 0;
	*out = f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->parts = parts;
	f->s = parts->s;
	return has_masks(f->s) ? decoder_new(&f->decoder, &limits) : 0;
}

static void release_rows(struct field_maker *f)
{
	array_release(&f->numbers);
	for (unsigned i = 0; i < DATASET_PARTS_MAX; i++)
		rows_memory_release(&f->rows[i]);
}

void field_maker_free(struct field_maker *f)
{
	if (!f)
		return;
	decoder_free(f->decoder);
	release_rows(f);
	free(f);
}

/* Returns the memory of all rows and numbers, used or not. */
static uint64_t rows_held(const struct field_maker *f)
{
	uint64_t held = array_room_bytes(&f->numbers);

	for (unsigned i = 0; i < DATASET_PARTS_MAX; i++)
		held += rows_memory_bytes(&f->rows[i]);
	return held;
}

/* Returns the size of the rows that were parsed for this original. */
static uint64_t rows_used(const struct field_maker *f)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < DATASET_PARTS_MAX; i++)
		if (f->parsed >> i & 1)
			used += rows_bytes(&f->rows[i]);
	return used;
}

uint64_t field_maker_memory_bytes(const struct field_maker *f)
{
	uint64_t held;

	if (!f)
		return 0;
	held = sizeof(*f) + rows_held(f);
	return f->decoder ? held + decoder_memory_bytes(f->decoder) : held;
}

void field_maker_trim(struct field_maker *f)
{
	if (!f)
		return;
	release_rows(f);
	if (f->decoder)
		decoder_trim(f->decoder);
}

void fields_done(struct field_maker *f)
{
	if (f && rows_held(f) > ROWS_KEPT_MAX)
		release_rows(f);
}

int fields_check(const struct engine_parts *parts, struct error *err)
{
	const struct annotations *a = dataset_annotations(parts->dataset);
	struct annotations_totals totals = {0};

	if (a)
		annotations_totals(a, &totals);
	for (unsigned i = 0; i < parts->s->fields.count; i++) {
		const struct field_def *def = &parts->s->fields.field[i];

		if (def->kind == REFRAIN_KIND_POINTS &&
			parts->s->members.of[i] == MEMBER_ANNOTATED &&
			totals.points != def->points)
			return error_set(err, -EINVAL,
				"fields: '%s' has %u points, but those of "
				"annotations have %u",
				def->name, def->points, totals.points);
	}
	return 0;
}

/* -- Members --------------------------------------------------------------- */

static void view_members(struct field_maker *f, const struct original *o)
{
	const struct part_span *span = original_parts(f->parts->pool, o);
	uint32_t n = dataset_parts(f->parts->dataset);

	f->parsed = 0;
	f->held_before = rows_held(f);
	f->numbers.bytes = 0;
	for (uint32_t i = 1; span && i < n; i++) {
		f->part[i - 1] = (struct part_view){NULL, 0};
		if (span[i].at != PART_ABSENT)
			f->part[i - 1] = (struct part_view){
				o->encoded->data + span[i].at, span[i].bytes};
	}
}

/* Is the member JSON? Its name may say so; then an empty file is damaged, while
 * an empty text of YOLO has no rows. Otherwise JSON begins with a bracket, and
 * a line of YOLO with a number. */
static bool is_json(const struct field_def *def, const struct part_view *part)
{
	size_t n = strlen(def->member);

	if (n >= 4 && strcmp(def->member + n - 4, "json") == 0)
		return true;
	for (size_t i = 0; i < part->bytes; i++)
		if (!strchr(" \t\r\n", part->data[i]) || !part->data[i])
			return part->data[i] == '[' || part->data[i] == '{';
	return false;
}

/* Parse the rows of a member, unless that was done for another field that has
 * the same member. The number of rows does not depend on the image's size,
 * which may not be known yet. */
static int parse_rows(struct field_maker *f, unsigned i, struct error *err)
{
	int member = f->s->members.of[i];
	const struct part_view *part = &f->part[member];
	const char *text = (const char *)part->data;
	struct rows *rows = &f->rows[member];
	uint64_t most = f->s->c.memory_bytes / ROWS_SHARE;
	int rc;

	if (f->parsed >> member & 1)
		return 0;
	/* The bound must not depend on the number of workers, because it
	 * decides which examples are damaged. It is at least 1, because 0 would
	 * mean that there is no bound. */
	most = most > rows_used(f) ? most - rows_used(f) : 1;
	rows->most_bytes = (size_t)most;
	rc = is_json(&f->s->fields.field[i], part)
		? rows_json(rows, text, part->bytes, err)
		: rows_yolo(rows, text, part->bytes, f->width ? f->width : 1,
			  f->height ? f->height : 1, err);
	if (rc == 0)
		f->parsed |= UINT32_C(1) << member;
	return rc;
}

static int load_boxes(struct field_maker *f, unsigned i, struct error *err)
{
	int member = f->s->members.of[i];
	int rc = parse_rows(f, i, err);

	if (rc < 0)
		return rc;
	f->value[i].rows = rows_count(&f->rows[member]);
	f->value[i].bytes = f->value[i].rows * sizeof(struct box);
	return 0;
}

static int load_points(struct field_maker *f, unsigned i, struct error *err)
{
	uint32_t points = f->s->fields.field[i].points;
	int member = f->s->members.of[i];
	int rc = parse_rows(f, i, err);
	struct rows *rows = &f->rows[member];

	if (rc < 0)
		return rc;
	if (rows_count(rows) > 0 && rows->row_points != points)
		return error_set(err, -EBADMSG,
			"its rows have %u points instead of %u",
			rows->row_points, points);
	f->value[i].rows = rows_count(rows);
	f->value[i].bytes = array_bytes(&rows->points);
	return 0;
}

/* Load the numbers of a field. The array has numbers of several fields and
 * moves when it grows, so fields store offsets into it. */
static int load_numbers(struct field_maker *f, unsigned i, struct error *err)
{
	const struct part_view *part = &f->part[f->s->members.of[i]];
	size_t before = array_bytes(&f->numbers);
	int rc = rows_numbers(
		&f->numbers, (const char *)part->data, part->bytes, err);

	if (rc < 0)
		return rc;
	f->value[i].from = before;
	f->value[i].bytes = array_bytes(&f->numbers) - before;
	f->value[i].rows = (uint32_t)(f->value[i].bytes / sizeof(int32_t));
	return 0;
}

static int load_bytes(struct field_maker *f, unsigned i)
{
	const struct part_view *part = &f->part[f->s->members.of[i]];
	uint32_t max = f->s->fields.field[i].max;

	/* a file of more than 4 GiB does not fit in usual memory budgets */
	f->value[i].rows =
		part->bytes < UINT32_MAX ? (uint32_t)part->bytes : UINT32_MAX;
	f->value[i].bytes = part->bytes < max ? part->bytes : max;
	return 0;
}

static int check_mask(const struct field_maker *f,
	const struct image_info *info, struct error *err)
{
	if (!f->width || (info->width == f->width && info->height == f->height))
		return 0;
	return error_set(err, -EBADMSG,
		"it is %u x %u pixels large, but the image %u x %u",
		info->width, info->height, f->width, f->height);
}

static int load_mask(struct field_maker *f, unsigned i, struct error *err)
{
	const struct part_view *part = &f->part[f->s->members.of[i]];
	struct image_info *info = &f->mask[i];
	int rc = decode_probe(f->decoder, part->data, part->bytes, info, err);

	if (rc < 0)
		return rc;
	if (!info->id_bytes)
		return error_set(err, -EBADMSG,
			"it must be a PNG of grey samples or palette indices");
	f->value[i].id_bytes = info->id_bytes;
	return check_mask(f, info, err);
}

static int load_member(struct field_maker *f, unsigned i, struct error *err)
{
	switch (f->s->fields.field[i].kind) {
	case REFRAIN_KIND_BOXES:
		return load_boxes(f, i, err);
	case REFRAIN_KIND_POINTS:
		return load_points(f, i, err);
	case REFRAIN_KIND_CLASSES:
		return load_numbers(f, i, err);
	case REFRAIN_KIND_MASK:
		return load_mask(f, i, err);
	default:
		return load_bytes(f, i);
	}
}

/* -- Loading --------------------------------------------------------------- */

/* May the image have this size? 0 stands for any size. */
static bool is_size(
	const struct field_maker *f, uint32_t width, uint32_t height)
{
	return !width || !height || !f->width || !f->height ||
		(width == f->width && height == f->height);
}

/* Check the entry of the annotations. The size in the entry may be that of the
 * image as stored or as its EXIF orientation turns it. */
static int load_annotated(struct field_maker *f, const struct original *o,
	const struct field_def *def, struct error *err)
{
	struct annotation_rows r;

	if (annotations_find(dataset_annotations(f->parts->dataset),
		    o->example.name, &r) < 0)
		return def->optional ? 0
				     : error_set(err, -ENOENT,
					       "it is not in the annotations");
	if (is_size(f, r.width, r.height) || is_size(f, r.height, r.width))
		return 0;
	return error_set(err, -EBADMSG,
		"it is %u x %u pixels large, but %u x %u in the annotations",
		f->width, f->height, r.width, r.height);
}

static int load_field(struct field_maker *f, const struct original *o,
	unsigned i, struct error *err)
{
	const struct field_def *def = &f->s->fields.field[i];
	int member = f->s->members.of[i], rc;

	f->value[i] = (struct field_value){.lacks = true};
	if (member == MEMBER_NONE)
		return 0;
	if (member == MEMBER_ANNOTATED)
		return load_annotated(f, o, def, err);
	if (!f->part[member].data)
		/* The reader refuses an example without this member, unless the
		 * member is optional for another field. */
		return def->optional ? 0
				     : error_set(err, -ENOENT, "it is missing");
	f->value[i].lacks = false;
	rc = load_member(f, i, err);
	return rc < 0 ? error_wrap(err, rc, "field '%s'", def->name) : 0;
}

/* Set the boxes that crops depend on: those of the first field of boxes. */
static void set_boxes(const struct field_maker *f, struct original *o)
{
	const struct settings *s = f->s;
	unsigned i = fields_boxed(s);
	const struct rows *rows;

	o->picture.boxes = NULL;
	o->picture.box_count = 0;
	if (i == FIELDS_MAX || s->members.of[i] == MEMBER_ANNOTATED) {
		fields_boxes(f->parts, o, NULL, &o->picture);
		return;
	}
	if (f->value[i].lacks)
		return;
	rows = &f->rows[s->members.of[i]];
	o->picture.boxes = array_data(&rows->boxes);
	o->picture.box_count = rows_count(rows);
}

int fields_load(struct field_maker *f, struct original *o, struct error *err)
{
	int rc = 0;

	if (!f)
		return 0;
	f->width = o->picture.info.width;
	f->height = o->picture.info.height;
	view_members(f, o);
	for (unsigned i = 0; rc == 0 && i < f->s->fields.count; i++)
		rc = load_field(f, o, i, err);
	if (rc == 0)
		set_boxes(f, o);
	return rc;
}

/* Check or compute again what depends on the image's size. */
static int size_field(struct field_maker *f, const struct original *o,
	unsigned i, struct error *err)
{
	const struct field_def *def = &f->s->fields.field[i];
	int member = f->s->members.of[i], rc = 0;

	if (member == MEMBER_ANNOTATED)
		return load_annotated(f, o, def, err);
	if (f->value[i].lacks)
		return 0;
	if (def->kind == REFRAIN_KIND_MASK)
		rc = check_mask(f, &f->mask[i], err);
	else if (def->kind == REFRAIN_KIND_BOXES ||
		def->kind == REFRAIN_KIND_POINTS)
		rc = parse_rows(f, i, err);
	return rc < 0 ? error_wrap(err, rc, "field '%s'", def->name) : 0;
}

int fields_sized(struct field_maker *f, struct original *o, uint32_t width,
	uint32_t height, struct error *err)
{
	int rc = 0;

	if (!f || f->width)
		return 0;
	f->width = width;
	f->height = height;
	f->parsed = 0;
	for (unsigned i = 0; rc == 0 && i < f->s->fields.count; i++)
		rc = size_field(f, o, i, err);
	if (rc == 0)
		set_boxes(f, o);
	return rc;
}

/* -- The block ------------------------------------------------------------- */

static size_t head_bytes(const struct field_maker *f)
{
	return block_aligned(f->s->fields.count * sizeof(struct field_value));
}

/* Returns the size of a value in the block. For a mask, sets *ids to the layout
 * of its ids. A region without pixels stands for the whole mask. */
static size_t value_bytes(const struct field_maker *f, unsigned i,
	const struct rect *region, struct image *ids)
{
	const struct image_info *mask = &f->mask[i];
	struct rect whole = {0, 0, mask->width, mask->height};

	return f->value[i].id_bytes
		? decode_ids_layout(mask, region->width ? region : &whole, ids)
		: f->value[i].bytes;
}

size_t fields_block_bytes(
	const struct field_maker *f, const struct rect *region)
{
	struct image ids;
	size_t bytes;

	if (!f || !*f->s->members.text)
		return 0;
	bytes = head_bytes(f);
	for (unsigned i = 0; i < f->s->fields.count; i++)
		bytes += block_aligned(value_bytes(f, i, region, &ids));
	return bytes;
}

struct field_extra fields_extra(const struct field_maker *f)
{
	struct field_extra extra = {0};
	uint64_t held, rows;

	if (!f)
		return extra;
	/* The room of an array exceeds its elements by half at most. */
	rows = rows_used(f) + array_bytes(&f->numbers);
	extra.new_rows_bytes = rows + rows / 2;
	if (rows_held(f) > f->held_before)
		extra.rows_bytes = rows_held(f) - f->held_before;
	if (!f->decoder)
		return extra;
	held = decoder_memory_bytes(f->decoder);
	for (unsigned i = 0; i < f->s->fields.count; i++)
		if (f->value[i].id_bytes &&
			f->mask[i].memory_bytes > extra.new_bytes)
			extra.new_bytes = f->mask[i].memory_bytes;
	if (extra.new_bytes > held)
		extra.bytes = extra.new_bytes - held;
	return extra;
}

/* Check that ids of 16 bits fit into a column of u8. */
static int check_ids(const struct field_def *def, const struct image *ids,
	unsigned id_bytes, struct error *err)
{
	size_t n = (size_t)ids->width * ids->height;
	const uint16_t *id = (const uint16_t *)(const void *)ids->data;

	if (id_bytes == 1 || def->type != REFRAIN_U8)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (id[i] > UINT8_MAX)
			return error_set(err, -EBADMSG,
				"it has the id %u, which needs type=u16",
				id[i]);
	return 0;
}

static int fill_mask(struct field_maker *f, unsigned i,
	const struct rect *region, uint8_t *to, struct error *err)
{
	const struct part_view *part = &f->part[f->s->members.of[i]];
	const struct field_def *def = &f->s->fields.field[i];
	struct field_value *v = &f->value[i];
	struct image ids;
	int rc;

	v->bytes = value_bytes(f, i, region, &ids);
	ids.data = to;
	rc = decode_ids(
		f->decoder, part->data, part->bytes, &f->mask[i], &ids, err);
	if (rc == 0)
		rc = check_ids(def, &ids, v->id_bytes, err);
	if (rc < 0)
		return error_wrap(err, rc, "field '%s'", def->name);
	v->region = (struct rect){ids.x, ids.y, ids.width, ids.height};
	v->stride_bytes = ids.stride_bytes;
	return 0;
}

static const void *parsed_value(const struct field_maker *f, unsigned i)
{
	int member = f->s->members.of[i];
	const struct rows *rows = &f->rows[member];

	switch (f->s->fields.field[i].kind) {
	case REFRAIN_KIND_BOXES:
		return array_data(&rows->boxes);
	case REFRAIN_KIND_POINTS:
		return array_data(&rows->points);
	case REFRAIN_KIND_CLASSES:
		return (const uint8_t *)array_data(&f->numbers) +
			f->value[i].from;
	default:
		return f->part[member].data;
	}
}

int fields_fill(struct field_maker *f, const struct rect *region,
	uint8_t *block, struct error *err)
{
	size_t at;
	int rc = 0;

	if (!f || !*f->s->members.text)
		return 0;
	at = head_bytes(f);
	for (unsigned i = 0; rc == 0 && i < f->s->fields.count; i++) {
		struct field_value *v = &f->value[i];

		v->at = at;
		if (v->id_bytes)
			rc = fill_mask(f, i, region, block + at, err);
		else if (v->bytes)
			memcpy(block + at, parsed_value(f, i), v->bytes);
		at += block_aligned(v->bytes);
	}
	memcpy(block, f->value, f->s->fields.count * sizeof(*f->value));
	return rc;
}
