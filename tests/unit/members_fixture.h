/* SPDX-License-Identifier: MIT */
/* For tests of examples with several parts: makes small images with members,
 * whose content is computed from their names; and checks that each serving of a
 * batch has the members of its example in its columns. */
#ifndef MEMBERS_FIXTURE_H
#define MEMBERS_FIXTURE_H

#include "common/base/hash.h"
#include "loader/dataset/dataset.h"

#define MEMBER_MAX 3000

/* The members, in the form for a dataset and in the form of fields of a loader.
 */
#define MEMBERS_TEXT "json;seg.png;masks/"
#define MEMBERS_FIELDS                                                         \
	"image; json=json kind=bytes max=3000; "                               \
	"seg=seg.png kind=bytes max=3000 optional; "                           \
	"below=masks/ kind=bytes max=3000"

/* The content of a member is its name, many times. */
static inline size_t member_content(const char *name, uint8_t *out)
{
	size_t n = strlen(name), bytes = hash64(name, n, 1) % MEMBER_MAX;

	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)name[i % n];
	return bytes;
}

/* Returns the path of a member in the tree: its path without that of its shard.
 */
static inline const char *member_path(const struct example *ex)
{
	return ex->whole ? ex->name : strchr(ex->name, '/') + 1;
}

/* Check that a serving has the content of this member. The column has no bytes
 * if the example lacks the member or is filled with zeros. */
static inline void expect_member(const struct dataset *ds,
	const struct refrain_batch *b, uint32_t i, uint32_t part,
	const char *name)
{
	const struct refrain_column *c = refrain_column_find(b, name);
	uint8_t content[MEMBER_MAX];
	struct example ex;
	size_t n = 0;

	ck_assert_ptr_nonnull(c);
	ck_assert(c->kind == REFRAIN_KIND_BYTES && c->type == REFRAIN_U8);
	if (dataset_part(ds, b->substitutes[i], part, &ex) &&
		!(b->status[i] && b->substitutes[i] == b->indices[i]))
		n = member_content(member_path(&ex), content);
	ck_assert_uint_eq(c->offsets[i + 1] - c->offsets[i], n);
	ck_assert_uint_eq(c->lengths[i], n);
	ck_assert_mem_eq((const uint8_t *)c->data + c->offsets[i], content, n);
}

static inline void expect_members(
	const struct dataset *ds, const struct refrain_batch *b)
{
	static const char *const names[] = {"json", "seg", "below"};

	for (uint32_t i = 0; i < b->count; i++)
		for (uint32_t part = 1; part < dataset_parts(ds); part++)
			expect_member(ds, b, i, part, names[part - 1]);
}

#endif
