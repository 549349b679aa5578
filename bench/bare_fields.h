/* SPDX-License-Identifier: MIT */
/* Reads the fields for loader-bare: masks from files in memory, and boxes from
 * annotations. Calls the same functions as the loader. An error ends the
 * program. */
#ifndef BENCH_BARE_FIELDS_H
#define BENCH_BARE_FIELDS_H

#include "loader/core/settings.h"
#include "loader/dataset/dataset.h"
#include "loader/fields/map.h"
#include "loader/image/image.h"

struct bare_fields;

/* Read all masks into memory. Returns NULL if the settings have no fields. */
struct bare_fields *bare_fields_new(
	const struct settings *s, const struct dataset *ds);
void bare_fields_free(struct bare_fields *f); /* NULL is allowed */

/* Read the header of an example's mask. Returns the size of the mask's region
 * in bytes. */
size_t bare_fields_lay_out(struct bare_fields *f, uint64_t index,
	const struct rect *region, struct image *ids);
void bare_fields_decode(
	struct bare_fields *f, uint64_t index, struct image *ids);
/* Fill in the fields of a serving at a place of the area. */
void bare_fields_map(const struct bare_fields *f, uint64_t index,
	const struct image *ids, const struct field_view *view, void *area,
	uint32_t place);

#endif
