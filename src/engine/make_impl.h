/* SPDX-License-Identifier: MIT */
/*
 * Turns encoded bytes into a sample: decodes, augments, and keeps data for
 * later servings. decode.h and augment.h have the arithmetic; here the memory
 * is managed. Owned by a worker; functions that need the loader's lock say so.
 */
#ifndef ENGINE_MAKE_IMPL_H
#define ENGINE_MAKE_IMPL_H

#include "engine/engine_impl.h"

/* The state of decoding one entry for one serving. */
struct make {
	struct worker *w;
	struct serving *s;
	struct entry *e;
	bool more; /* there are servings to come */
	struct sample_layout layout;
	struct buffer *keep; /* decode into that, or NULL: scratch */
	uint64_t decode_ns, augment_ns;
};

/* -- room.c: memory for it; lock held -- */

/* Room in the pool for what is kept, or NULL. */
struct buffer *room_to_keep(struct engine *engine, size_t bytes);
/* One more is kept, in so many bytes. */
void room_count_kept(struct engine *engine, uint64_t cost);
/* May the encoded bytes stay, for later? */
bool room_for_encoded(const struct engine *engine);
/*
 * Scratch memory for decoding, and the extra bytes: waits if it must. 0,
 * -EAGAIN: another worker has all memory for itself, try later; -E2BIG: it
 * does not fit; -ECANCELED.
 */
int room_to_work(struct make *m);
/* Release the memory that room_to_work() charged. */
void room_done(struct make *m);

#endif
