/* SPDX-License-Identifier: MIT */
/*
 * Where the fields of a batch lie: one area of fixed size, whatever the number
 * of rows. While a batch is made, each example has room for `max` rows, so that
 * workers write without asking each other. When it is handed over, the rows are
 * moved together, and offsets say which are whose. Images and classes have
 * memory of their own and no columns here. A layout is constant.
 */
#ifndef FIELDS_COLUMNS_H
#define FIELDS_COLUMNS_H

#include <refrain/loader.h>

#include "loader/fields/fields.h"

/* Boxes have three columns: NAME, NAME.class, NAME.which; points two. */
#define COLUMNS_MAX (3 * FIELDS_MAX)
#define COLUMN_NAME_MAX (FIELD_NAME_MAX + 8)

struct column {
	char name[COLUMN_NAME_MAX];
	unsigned field; /* its number */
	int kind, type; /* enums of refrain/loader.h */
	uint32_t max;	/* rows of an example; 0: always one, not counted */
	uint32_t ndim;	/* of a row */
	uint64_t shape[3];
	size_t row_bytes;
	size_t at; /* of its first row, in the area */
};

struct columns {
	uint32_t batch; /* examples */
	unsigned count;
	struct column column[COLUMNS_MAX];
	/* Of each field with rows, in the area: how many an example has, and
	 * batch + 1 offsets. */
	size_t lengths[FIELDS_MAX], offsets[FIELDS_MAX];
	size_t bytes; /* of the area; 0: there are no columns */
};

/* Lay out the columns of batches of `batch` samples of height x width. Returns
 * 0, or -E2BIG if they do not fit in memory, with a message. */
int columns_layout(struct columns *out, const struct fields *fields,
	uint32_t batch, uint32_t height, uint32_t width, struct error *err);

/* The first column of a field, or NULL. The next ones follow it. */
const struct column *columns_of_field(const struct columns *c, unsigned field);

/* Where an example's rows of a column are while the batch is made; `area` is
 * aligned to 64 bytes. */
void *column_rows(const struct columns *c, const struct column *column,
	void *area, uint32_t place);
/* Set how many rows of a field an example has, at most `max`. */
void columns_set_rows(const struct columns *c, unsigned field, void *area,
	uint32_t place, uint32_t rows);

/* Move the rows of the first `count` examples together, and set the offsets.
 * Called once, when all of them are made. */
void columns_pack(const struct columns *c, void *area, uint32_t count);

/*
 * Describe column n of the examples `first` to first + count - 1 of a packed
 * area. If `offsets` is not NULL, it has room for count + 1 numbers and gets
 * offsets that begin with 0; they are needed if `first` is not 0.
 */
void columns_describe(const struct columns *c, unsigned n, const void *area,
	uint32_t first, uint32_t count, uint64_t *offsets,
	struct refrain_column *out);

#endif
