/* SPDX-License-Identifier: MIT */
/*
 * The idle originals of the pool: they hold data for later servings, none of
 * which is planned yet. When memory is short, the original that is needed last
 * is dropped: if all files have one size, no other choice means fewer repeated
 * reads. Guarded by the turn's lock.
 */
#ifndef ENGINE_IDLE_FILES_IMPL_H
#define ENGINE_IDLE_FILES_IMPL_H

#include <stdint.h>

struct original;

/* A binary heap by original->next_step, the last one first. */
struct idle {
	struct original **heap; /* with room for all originals */
	uint32_t count;
};

/* -ENOMEM. */
int idle_init(struct idle *idle, uint32_t room);
void idle_release(struct idle *idle);
/* The memory of a heap for `room` originals. */
uint64_t idle_bytes(uint64_t room);

/* Add an original, which is next needed in the batch of o->next_step. */
void idle_add(struct idle *idle, struct original *o);
void idle_remove(struct idle *idle, struct original *o);
/* The original that is needed last, or NULL. */
struct original *idle_last(const struct idle *idle);

#endif
