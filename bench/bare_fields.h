/* SPDX-License-Identifier: MIT */
/*
 * The fields of loader-bare: masks from files in memory, and boxes from
 * annotations, by the same functions as in the loader. Errors end the program.
 */
#ifndef BENCH_BARE_FIELDS_H
#define BENCH_BARE_FIELDS_H

#include "loader/core/settings.h"
#include "loader/dataset/dataset.h"
#include "loader/fields/map.h"
#include "loader/image/image.h"

struct bare_fields;

/* Read all masks. Returns NULL if there are no fields. */
struct bare_fields *bare_fields_new(
	const struct settings *s, const struct dataset *ds);
void bare_fields_free(struct bare_fields *f); /* NULL is allowed */

/* Check the header of an example's mask. Returns the bytes of its region. */
size_t bare_fields_lay_out(struct bare_fields *f, uint64_t index,
	const struct rect *region, struct image *ids);
void bare_fields_decode(
	struct bare_fields *f, uint64_t index, struct image *ids);
/* Fill in the fields of a serving at a place of the area. */
void bare_fields_map(const struct bare_fields *f, uint64_t index,
	const struct image *ids, const struct field_view *view, void *area,
	uint32_t place);

#endif
