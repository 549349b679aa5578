/* SPDX-License-Identifier: MIT */
/* The members of an example while its servings are made; see
 * make_members_impl.h. No state. */
#include "loader/engine/make_members_impl.h"

#include <string.h>

#include "loader/core/settings.h"
#include "loader/engine/batch.h"

#define TAIL_ALIGN 16

static size_t tail_end(size_t bytes)
{
	return (bytes + TAIL_ALIGN - 1) / TAIL_ALIGN * TAIL_ALIGN;
}

static uint32_t members_of(const struct engine_parts *parts)
{
	return dataset_parts(parts->dataset) - 1;
}

size_t members_tail(const struct engine_parts *parts, const struct original *o)
{
	const struct part_span *span = original_parts(parts->pool, o);
	size_t bytes = 0;

	for (uint32_t i = 1; span && i <= members_of(parts); i++)
		if (span[i].at != PART_ABSENT)
			bytes += tail_end(span[i].bytes);
	return bytes;
}

size_t members_behind(size_t bytes, size_t tail)
{
	return tail ? tail_end(bytes) + tail : bytes;
}

void members_copy(const struct engine_parts *parts, const struct original *o,
	uint8_t *kept, size_t bytes)
{
	const struct part_span *span = original_parts(parts->pool, o);
	size_t at = tail_end(bytes);

	for (uint32_t i = 1; span && i <= members_of(parts); i++) {
		if (span[i].at == PART_ABSENT || !span[i].bytes)
			continue;
		memcpy(kept + at, o->encoded->data + span[i].at, span[i].bytes);
		at += tail_end(span[i].bytes);
	}
}

void members_moved(const struct engine_parts *parts, const struct original *o,
	size_t bytes)
{
	struct part_span *span = original_parts(parts->pool, o);
	size_t at = tail_end(bytes);

	if (!span)
		return;
	span[0].at = 0;
	span[0].bytes = bytes;
	for (uint32_t i = 1; i <= members_of(parts); i++) {
		if (span[i].at == PART_ABSENT)
			continue;
		span[i].at = span[i].bytes ? at : 0;
		at += tail_end(span[i].bytes);
	}
}

static void view_members(const struct engine_parts *parts,
	const struct original *o, const struct buffer *b,
	struct part_view view[DATASET_PARTS_MAX])
{
	const struct part_span *span = original_parts(parts->pool, o);

	for (uint32_t i = 1; span && i <= members_of(parts); i++) {
		view[i - 1] = (struct part_view){NULL, 0};
		if (span[i].at != PART_ABSENT)
			view[i - 1] = (struct part_view){
				b->data + span[i].at, span[i].bytes};
	}
}

int members_load(const struct engine_parts *parts, const struct original *o,
	struct error *err)
{
	const struct settings_members *m = &parts->s->members;
	struct part_view view[DATASET_PARTS_MAX];

	if (!m->load)
		return 0;
	view_members(parts, o, o->encoded, view);
	return m->load(m->arg, o->index, view, err);
}

int members_map(const struct engine_parts *parts, const struct serving *s,
	const struct buffer *b)
{
	const struct settings_members *m = &parts->s->members;
	struct part_view view[DATASET_PARTS_MAX];
	struct member_serving serving = {
		.index = s->original->index,
		.seed = s->step->slots[s->place].augment_seed,
		.crop = &s->step->slab->crops[s->place],
		.members = view,
		.slab = s->step->slab,
		.place = s->place,
	};

	if (!m->map)
		return 0;
	view_members(parts, s->original, b, view);
	return m->map(m->arg, &serving);
}
