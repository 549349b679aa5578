/* SPDX-License-Identifier: MIT */
/*
 * The members of an example while its servings are made: they lie in the
 * encoded file, then behind the image or the sample that is kept. Called by the
 * worker that has the original, without the lock. With examples of one part
 * none of these does anything.
 */
#ifndef ENGINE_MAKE_MEMBERS_IMPL_H
#define ENGINE_MAKE_MEMBERS_IMPL_H

#include <stddef.h>

#include "common/base/err.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/originals_impl.h"

/* The bytes that the members of an encoded original take if they are kept; 0:
 * it has none. */
size_t members_tail(const struct engine_parts *parts, const struct original *o);
/* The size of `bytes` bytes and the members behind them. */
size_t members_behind(size_t bytes, size_t tail);
/* Copy the members behind the first `bytes` bytes of memory that will be
 * kept. */
void members_copy(const struct engine_parts *parts, const struct original *o,
	uint8_t *kept, size_t bytes);
/* From now on the members are where members_copy() has put them. With the
 * lock. */
void members_moved(const struct engine_parts *parts, const struct original *o,
	size_t bytes);

/* Call settings_members.load() with an encoded original. */
int members_load(const struct engine_parts *parts, const struct original *o,
	struct error *err);
/* Call settings_members.map(). The members lie in `b`. */
int members_map(const struct engine_parts *parts, const struct serving *s,
	const struct buffer *b);

#endif
