/* SPDX-License-Identifier: MIT */
/*
 * The members of an example while its servings are made. At first they are in
 * the encoded data, then after the image or sample that is kept. Called without
 * the lock by the worker that has the original. If examples have only one part,
 * none of these functions does anything.
 */
#ifndef ENGINE_MAKE_MEMBERS_IMPL_H
#define ENGINE_MAKE_MEMBERS_IMPL_H

#include <stddef.h>

#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/originals_impl.h"

/* Returns the bytes that the members of an encoded original will take if they
 * are kept, or 0 if it has no members. */
size_t members_tail(const struct engine_parts *parts, const struct original *o);
/* Returns the size of `bytes` bytes and, after them, members of `tail`
 * bytes. */
size_t members_behind(size_t bytes, size_t tail);
/* Copy the members to memory that will be kept, after its first `bytes`
 * bytes. */
void members_copy(const struct engine_parts *parts, const struct original *o,
	uint8_t *kept, size_t bytes);
/* Note that members_copy() has moved the members. The caller holds the lock. */
void members_moved(const struct engine_parts *parts, const struct original *o,
	size_t bytes);

/* Call settings_members.load() for an encoded original. */
int members_load(const struct engine_parts *parts, const struct original *o,
	struct error *err);
/* Call settings_members.map() for a serving. The members are in `b`. */
int members_map(const struct engine_parts *parts, const struct serving *s,
	const struct buffer *b);

#endif
