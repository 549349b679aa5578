/* SPDX-License-Identifier: MIT */
/*
 * For tests of examples with several parts: small images with members whose
 * content follows from their names, and a settings_members() that checks and
 * counts the members of every serving.
 */
#ifndef MEMBERS_FIXTURE_H
#define MEMBERS_FIXTURE_H

#include <stdatomic.h>

#include "common/base/hash.h"
#include "loader/core/settings.h"
#include "loader/dataset/dataset.h"

/* What the loader asks for; no text: nothing. */
static struct settings_members wanted;

/* Of all servings, in any order. */
static _Atomic uint64_t mapped, mapped_sum;

/* The content of a member is its name, many times. */
static inline size_t member_content(const char *name, uint8_t *out)
{
	size_t n = strlen(name), bytes = hash64(name, n, 1) % 3000;

	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)name[i % n];
	return bytes;
}

#define MEMBER_MAX 3000

/* The path without that of the shard: the member's in the tree. */
static inline const char *member_path(const struct example *ex)
{
	return ex->whole ? ex->name : strchr(ex->name, '/') + 1;
}

/* The hash of the members that a serving must have. */
static inline uint64_t members_hash(
	const struct dataset *ds, uint64_t index, uint64_t seed)
{
	uint64_t h = hash64(&index, sizeof(index), seed);
	uint8_t content[MEMBER_MAX];

	for (uint32_t i = 1; i < dataset_parts(ds); i++) {
		struct example ex;
		size_t n;

		if (!dataset_part(ds, index, i, &ex)) {
			h++;
			continue;
		}
		n = member_content(member_path(&ex), content);
		h = hash64(content, n, h);
	}
	return h;
}

static inline int map_some(void *arg, const struct member_serving *s)
{
	uint64_t h = hash64(&s->index, sizeof(s->index), s->seed);
	uint32_t n = 1;

	(void)arg;
	for (const char *at = wanted.text; *at; at++)
		n += *at == ';';
	for (uint32_t i = 0; i < n; i++) {
		const struct part_view *m = &s->members[i];

		h = m->data ? hash64(m->data, m->bytes, h) : h + 1;
	}
	mapped++;
	mapped_sum += h;
	return s->crop->image_width ? 0 : -EINVAL;
}

/* In place of that of the library. */
int settings_members(struct settings *s, struct error *err)
{
	(void)err;
	s->members = wanted;
	return 0;
}

static inline void want_members(const char *text, uint32_t optional)
{
	wanted = (struct settings_members){
		.text = text, .optional = optional, .map = map_some};
	mapped = mapped_sum = 0;
}

#endif
