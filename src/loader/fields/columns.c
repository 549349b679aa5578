/* SPDX-License-Identifier: MIT */
/* Lays out and packs the columns of batches; see columns.h. */
#include "loader/fields/columns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COLUMN_ALIGN 64

/* -- The layout ------------------------------------------------------------ */

/* Reserve `count` times `each` bytes in the area. Returns their offset. */
static size_t take_room_for(
	struct columns *c, uint64_t count, uint64_t each, bool *fits)
{
	size_t at = c->bytes, bytes;

	*fits = *fits && !__builtin_mul_overflow(count, each, &bytes) &&
		!__builtin_add_overflow(bytes, at, &c->bytes) &&
		c->bytes <= SIZE_MAX / 2;
	if (!*fits)
		c->bytes = 0;
	c->bytes = (c->bytes + COLUMN_ALIGN - 1) / COLUMN_ALIGN * COLUMN_ALIGN;
	return at;
}

static size_t type_bytes(int type)
{
	switch (type) {
	case REFRAIN_U16:
		return 2;
	case REFRAIN_F32:
	case REFRAIN_I32:
		return 4;
	default:
		return 1;
	}
}

/* Add a column. shape0 and shape1 are the dimensions of a row; a dimension that
 * is 0 does not exist. */
static void add_column(struct columns *c, const struct field_def *f,
	unsigned field, const char *suffix, int type, uint64_t shape0,
	uint64_t shape1, bool *fits)
{
	struct column *to = &c->column[c->count++];
	size_t rows = (size_t)c->batch * (f->max ? f->max : 1);

	*to = (struct column){
		.field = field,
		.kind = f->kind,
		.type = type,
		.max = f->max,
		.ndim = shape1	 ? 2
			: shape0 ? 1
				 : 0,
		.shape = {shape0, shape1},
	};
	(void)snprintf(to->name, sizeof(to->name), "%s%s", f->name, suffix);
	*fits = *fits &&
		!__builtin_mul_overflow(shape0 ? shape0 : 1,
			shape1 ? shape1 : 1, &to->row_bytes) &&
		!__builtin_mul_overflow(
			to->row_bytes, type_bytes(type), &to->row_bytes);
	to->at = take_room_for(c, rows, to->row_bytes, fits);
}

static void add_columns_of(struct columns *c, const struct field_def *f,
	unsigned n, uint32_t height, uint32_t width, bool *fits)
{
	switch (f->kind) {
	case REFRAIN_KIND_CLASSES:
		add_column(c, f, n, "", REFRAIN_I32, 0, 0, fits);
		break;
	case REFRAIN_KIND_BOXES:
		add_column(c, f, n, "", REFRAIN_F32, 4, 0, fits);
		add_column(c, f, n, ".class", REFRAIN_I32, 0, 0, fits);
		add_column(c, f, n, ".which", REFRAIN_I32, 0, 0, fits);
		break;
	case REFRAIN_KIND_POINTS:
		add_column(c, f, n, "", REFRAIN_F32, f->points, 3, fits);
		add_column(c, f, n, ".which", REFRAIN_I32, 0, 0, fits);
		break;
	case REFRAIN_KIND_MASK:
		add_column(c, f, n, "", f->type, height, width, fits);
		break;
	case REFRAIN_KIND_BYTES:
		add_column(c, f, n, "", REFRAIN_U8, 0, 0, fits);
		break;
	default: /* images and classes are not in the area */
		return;
	}
	if (!f->max)
		return;
	c->lengths[n] = take_room_for(c, c->batch, sizeof(uint32_t), fits);
	c->offsets[n] = take_room_for(
		c, c->batch + UINT64_C(1), sizeof(uint64_t), fits);
}

int columns_layout(struct columns *out, const struct fields *fields,
	uint32_t batch, uint32_t height, uint32_t width, struct error *err)
{
	bool fits = true;

	memset(out, 0, sizeof(*out));
	out->batch = batch;
	for (unsigned i = 0; fits && i < fields->count; i++) {
		add_columns_of(out, &fields->field[i], i, height, width, &fits);
		if (!fits)
			return error_set(err, -E2BIG,
				"fields: a batch of %u rooms for '%s' does not "
				"fit in memory; lower its max",
				batch, fields->field[i].name);
	}
	return 0;
}

/* -- While a batch is made ------------------------------------------------- */

const struct column *columns_of_field(const struct columns *c, unsigned field)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->column[i].field == field)
			return &c->column[i];
	return NULL;
}

static size_t room_bytes(const struct column *column)
{
	return (column->max ? column->max : 1) * column->row_bytes;
}

void *column_rows(const struct columns *c, const struct column *column,
	void *area, uint32_t place)
{
	(void)c;
	return (uint8_t *)area + column->at + place * room_bytes(column);
}

static uint32_t *lengths_of(const struct columns *c, unsigned field, void *area)
{
	return (uint32_t *)(void *)((uint8_t *)area + c->lengths[field]);
}

void columns_set_rows(const struct columns *c, unsigned field, void *area,
	uint32_t place, uint32_t rows)
{
	lengths_of(c, field, area)[place] = rows;
}

/* -- Packing --------------------------------------------------------------- */

/* Move the rows of the examples together. A row never moves to a higher offset,
 * so no row is overwritten before it was moved. */
static void pack_column(const struct column *column, uint8_t *area,
	const uint64_t *offsets, uint32_t count)
{
	uint8_t *data = area + column->at;

	for (uint32_t i = 0; i < count; i++)
		memmove(data + offsets[i] * column->row_bytes,
			data + i * room_bytes(column),
			(offsets[i + 1] - offsets[i]) * column->row_bytes);
}

static uint64_t *offsets_of(const struct columns *c, unsigned field, void *area)
{
	return (uint64_t *)(void *)((uint8_t *)area + c->offsets[field]);
}

void columns_pack(const struct columns *c, void *area, uint32_t count)
{
	for (unsigned n = 0; n < c->count; n++) {
		const struct column *column = &c->column[n];
		uint64_t *offsets;

		if (!column->max)
			continue;
		offsets = offsets_of(c, column->field, area);
		offsets[0] = 0;
		for (uint32_t i = 0; i < count; i++)
			offsets[i + 1] = offsets[i] +
				lengths_of(c, column->field, area)[i];
		pack_column(column, area, offsets, count);
	}
}

/* Set the shape: first the number of all rows, or of examples; then the
 * dimensions of a row. */
static void describe_shape(
	const struct column *column, uint64_t rows, struct refrain_column *out)
{
	out->ndim = 1 + column->ndim;
	out->shape[0] = rows;
	for (uint32_t i = 0; i < column->ndim; i++)
		out->shape[1 + i] = column->shape[i];
	out->data_bytes = rows * column->row_bytes;
}

void columns_describe(const struct columns *c, unsigned n, const void *area,
	uint32_t first, uint32_t count, uint64_t *offsets,
	struct refrain_column *out)
{
	const struct column *column = &c->column[n];
	const uint8_t *base = area;
	uint64_t before = first, rows = count;
	const uint64_t *all;

	*out = (struct refrain_column){
		.name = column->name,
		.kind = column->kind,
		.type = column->type,
		.row_bytes = column->row_bytes,
	};
	if (column->max) {
		all = (const uint64_t *)(const void *)(base +
			c->offsets[column->field]);
		before = all[first];
		rows = all[first + count] - before;
		out->offsets = all + first;
		out->lengths = (const uint32_t *)(const void *)(base +
				       c->lengths[column->field]) +
			first;
		for (uint32_t i = 0; offsets && i <= count; i++)
			offsets[i] = all[first + i] - before;
		if (offsets)
			out->offsets = offsets;
	}
	out->data = base + column->at + before * column->row_bytes;
	describe_shape(column, rows, out);
}
