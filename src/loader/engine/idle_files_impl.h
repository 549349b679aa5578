/* SPDX-License-Identifier: MIT */
/*
 * The idle originals of the pool: they hold data for later servings, but none
 * of these is planned yet. When memory is scarce, the original that is needed
 * last is dropped first. If all files have the same size, this minimises the
 * number of repeated reads. Guarded by the turn's lock.
 */
#ifndef ENGINE_IDLE_FILES_IMPL_H
#define ENGINE_IDLE_FILES_IMPL_H

#include <stdint.h>

struct original;

/* A binary heap ordered by original->next_step, with the largest first. */
struct idle {
	struct original **heap; /* array with room for all originals */
	uint32_t count;
};

/* Returns 0 or -ENOMEM. */
int idle_init(struct idle *idle, uint32_t room);
void idle_release(struct idle *idle);
/* Returns the bytes of a heap for `room` originals. */
uint64_t idle_bytes(uint64_t room);

/* Add an original; o->next_step is the step that needs it next. */
void idle_add(struct idle *idle, struct original *o);
void idle_remove(struct idle *idle, struct original *o);
/* Returns the original that is needed last, or NULL. */
struct original *idle_last(const struct idle *idle);

#endif
