/* SPDX-License-Identifier: MIT */
/* Tests of the columns of batches: the places of rows, and how rows are packed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/fields/columns.h"
#include "suite.h"

static struct fields fields;
static struct columns columns;
static struct error err;
static uint8_t *area;

static void setup(void)
{
	area = NULL;
}

static void teardown(void)
{
	free(area);
}

static void lay_out(const char *text, uint32_t batch)
{
	ck_assert_int_eq(fields_parse(&fields, text, &err), 0);
	ck_assert_int_eq(
		columns_layout(&columns, &fields, batch, 20, 30, &err), 0);
	/* The memory has exactly the size of the area, so that a memory checker
	 * sees a write beyond it. */
	area = aligned_alloc(64, columns.bytes ? columns.bytes : 64);
	ck_assert_ptr_nonnull(area);
	memset(area, 0xa5, columns.bytes);
}

START_TEST(test_each_kind_has_its_columns)
{
	static const struct {
		const char *name;
		int type;
		uint32_t max, ndim;
		uint64_t shape[2];
		size_t row_bytes;
	} want[] = {
		{"boxes", REFRAIN_F32, 7, 1, {4}, 16},
		{"boxes.class", REFRAIN_I32, 7, 0, {0}, 4},
		{"boxes.which", REFRAIN_I32, 7, 0, {0}, 4},
		{"points", REFRAIN_F32, 32, 2, {5, 3}, 60},
		{"points.which", REFRAIN_I32, 32, 0, {0}, 4},
		{"mask", REFRAIN_U16, 0, 2, {20, 30}, 1200},
		{"text", REFRAIN_U8, 9, 0, {0}, 1},
		{"classes", REFRAIN_I32, 64, 0, {0}, 4},
	};

	lay_out("image; class; boxes max=7; points points=5; mask type=u16; "
		"text=txt max=9; classes",
		3);
	ck_assert_uint_eq(columns.count, 8);
	for (unsigned i = 0; i < 8; i++) {
		const struct column *c = &columns.column[i];

		ck_assert_str_eq(c->name, want[i].name);
		ck_assert_int_eq(c->type, want[i].type);
		ck_assert_uint_eq(c->max, want[i].max);
		ck_assert_uint_eq(c->ndim, want[i].ndim);
		ck_assert_uint_eq(c->shape[0], want[i].shape[0]);
		ck_assert_uint_eq(c->shape[1], want[i].shape[1]);
		ck_assert_uint_eq(c->row_bytes, want[i].row_bytes);
		ck_assert_uint_eq(c->at % 64, 0);
	}
	ck_assert_ptr_null(columns_of_field(&columns, 0));
	ck_assert_ptr_eq(columns_of_field(&columns, 4), &columns.column[5]);
}
END_TEST

START_TEST(test_images_and_classes_have_no_columns_here)
{
	lay_out("image; class", 100);
	ck_assert_uint_eq(columns.count, 0);
	ck_assert_uint_eq(columns.bytes, 0);
}
END_TEST

/* Returns a number that identifies the example and the row of a value. */
static int32_t mark_of(uint32_t place, uint32_t row)
{
	return (int32_t)(1000 * place + row);
}

static void fill(unsigned n, uint32_t place, uint32_t rows)
{
	const struct column *c = &columns.column[n];
	uint8_t *to = column_rows(&columns, c, area, place);

	for (uint32_t i = 0; i < rows; i++)
		for (size_t k = 0; k < c->row_bytes; k += 4) {
			int32_t mark = mark_of(place, i);

			memcpy(to + i * c->row_bytes + k, &mark, 4);
		}
	if (c->max)
		columns_set_rows(&columns, c->field, area, place, rows);
}

static void check_rows(const struct refrain_column *c, const uint32_t *lengths,
	uint32_t first, uint32_t count)
{
	const uint8_t *data = c->data;
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		ck_assert_uint_eq(c->offsets[i], at);
		ck_assert_uint_eq(c->lengths[i], lengths[first + i]);
		for (uint32_t k = 0; k < lengths[first + i]; k++, at++) {
			int32_t mark = mark_of(first + i, k);

			for (size_t b = 0; b < c->row_bytes; b += 4)
				ck_assert_int_eq(
					memcmp(data + at * c->row_bytes + b,
						&mark, 4),
					0);
		}
	}
	ck_assert_uint_eq(c->offsets[count], at);
	ck_assert_uint_eq(c->shape[0], at);
	ck_assert_uint_eq(c->data_bytes, at * c->row_bytes);
}

START_TEST(test_rows_are_packed_whole_and_in_order)
{
	static const uint32_t lengths[] = {3, 0, 7, 1, 0, 7, 2, 0};
	struct refrain_column c;
	uint64_t offsets[9];

	lay_out("mask type=i32; boxes max=7; points points=2 max=7", 8);
	for (uint32_t i = 0; i < 8; i++)
		for (unsigned n = 0; n < columns.count; n++)
			fill(n, i, columns.column[n].max ? lengths[i] : 1);
	columns_pack(&columns, area, 8);
	for (unsigned n = 1; n < columns.count; n++) {
		columns_describe(&columns, n, area, 0, 8, NULL, &c);
		check_rows(&c, lengths, 0, 8);
		/* Describe slices of a batch, as jobs of a share get them. */
		for (uint32_t first = 0; first < 8; first += 2) {
			columns_describe(
				&columns, n, area, first, 2, offsets, &c);
			check_rows(&c, lengths, first, 2);
		}
	}
	columns_describe(&columns, 0, area, 3, 2, NULL, &c);
	ck_assert_uint_eq(c.ndim, 3);
	ck_assert_uint_eq(c.shape[0], 2);
	ck_assert_uint_eq(c.shape[1], 20);
	ck_assert_uint_eq(c.data_bytes, 2 * 20 * 30 * 4);
	ck_assert_ptr_null(c.offsets);
	ck_assert_int_eq(*(const int32_t *)c.data, mark_of(3, 0));
}
END_TEST

/* The last batch of a run may be short. */
START_TEST(test_a_short_batch_has_its_own_rows_only)
{
	static const uint32_t lengths[] = {2, 5, 1};
	struct refrain_column c;

	lay_out("boxes max=5", 8);
	for (uint32_t i = 0; i < 3; i++)
		for (unsigned n = 0; n < columns.count; n++)
			fill(n, i, lengths[i]);
	columns_pack(&columns, area, 3);
	columns_describe(&columns, 0, area, 0, 3, NULL, &c);
	check_rows(&c, lengths, 0, 3);
	columns_pack(&columns, area, 0);
	columns_describe(&columns, 0, area, 0, 0, NULL, &c);
	ck_assert_uint_eq(c.shape[0], 0);
}
END_TEST

START_TEST(test_a_batch_that_no_memory_can_hold_is_refused)
{
	ck_assert_int_eq(fields_parse(&fields,
				 "image; points points=64 max=1048576", &err),
		0);
	ck_assert_int_eq(
		columns_layout(&columns, &fields, UINT32_MAX, 224, 224, &err),
		sizeof(size_t) > 4 ? 0 : -E2BIG);
	ck_assert_int_eq(fields_parse(&fields, "mask type=i32", &err), 0);
	ck_assert_int_eq(columns_layout(&columns, &fields, UINT32_MAX,
				 UINT32_MAX, UINT32_MAX, &err),
		-E2BIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "'mask' does not fit"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("columns");
	TCase *tc = case_with(s, "columns", setup, teardown);

	tcase_add_test(tc, test_each_kind_has_its_columns);
	tcase_add_test(tc, test_images_and_classes_have_no_columns_here);
	tcase_add_test(tc, test_rows_are_packed_whole_and_in_order);
	tcase_add_test(tc, test_a_short_batch_has_its_own_rows_only);
	tcase_add_test(tc, test_a_batch_that_no_memory_can_hold_is_refused);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
