/* SPDX-License-Identifier: MIT */
/*
 * The layout of the columns of a batch in one area of fixed size. While a batch
 * is made, each example has room for `max` rows at a place of its own, so
 * workers can write at the same time. When the batch is finished, the rows of
 * all examples are moved together, and offsets say which rows belong to which
 * example. Images and classes are in other memory and have no columns here. A
 * layout is constant.
 */
#ifndef FIELDS_COLUMNS_H
#define FIELDS_COLUMNS_H

#include <refrain/loader.h>

#include "loader/fields/fields.h"

/* Boxes have three columns (NAME, NAME.class, NAME.which), points have two. */
#define COLUMNS_MAX (3 * FIELDS_MAX)
#define COLUMN_NAME_MAX (FIELD_NAME_MAX + 8)

struct column {
	char name[COLUMN_NAME_MAX];
	unsigned field; /* number of the field */
	int kind, type; /* enum refrain_kind and enum refrain_type */
	/* maximum number of rows of an example; 0: each example has exactly
	 * one, and no count is stored */
	uint32_t max;
	uint32_t ndim; /* number of dimensions of a row */
	uint64_t shape[3];
	size_t row_bytes;
	size_t at; /* offset of the column's first row in the area */
};

struct columns {
	uint32_t batch; /* number of examples in a batch */
	unsigned count;
	struct column column[COLUMNS_MAX];
	/* Offsets in the area for each field with rows: of the numbers of rows
	 * of the examples, and of batch + 1 offsets of rows. */
	size_t lengths[FIELDS_MAX], offsets[FIELDS_MAX];
	size_t bytes; /* size of the area; 0: there are no columns */
};

/* Compute the layout of the columns for batches of `batch` samples of height x
 * width. Returns 0, or -E2BIG with err set if the area would not fit in memory.
 */
int columns_layout(struct columns *out, const struct fields *fields,
	uint32_t batch, uint32_t height, uint32_t width, struct error *err);

/* Returns the first column of a field, or NULL. The other columns of the field
 * follow it. */
const struct column *columns_of_field(const struct columns *c, unsigned field);

/* Returns the place for an example's rows of a column while the batch is made.
 * `area` is aligned to 64 bytes. */
void *column_rows(const struct columns *c, const struct column *column,
	void *area, uint32_t place);
/* Set the number of rows of a field that an example has; at most `max`. */
void columns_set_rows(const struct columns *c, unsigned field, void *area,
	uint32_t place, uint32_t rows);

/* Move the rows of the first `count` examples together, and set the offsets.
 * Call this once, when all these examples are made. */
void columns_pack(const struct columns *c, void *area, uint32_t count);

/* Describe column n for the examples from `first` to first + count - 1 of a
 * packed area. If `first` is not 0, `offsets` must have room for count + 1
 * numbers; it gets offsets that begin with 0. Otherwise it may be NULL. */
void columns_describe(const struct columns *c, unsigned n, const void *area,
	uint32_t first, uint32_t count, uint64_t *offsets,
	struct refrain_column *out);

#endif
