/* SPDX-License-Identifier: MIT */
/*
 * One budget of bytes for everything a loader holds, and buffers allocated from
 * it. Sizes of buffers are rounded up to classes an eighth to a quarter apart.
 * Freed buffers are kept for reuse until another class needs their bytes, so a
 * loader that has seen all its sizes allocates nothing. Locking is the
 * caller's.
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/list.h"

#define MEMORY_CLASSES 128

struct buffer {
	struct list node; /* private */
	unsigned size_class;
	uint8_t *data; /* 64-byte aligned */
	size_t bytes;  /* capacity of data */
};

struct memory {
	uint64_t limit;	  /* set by the owner before it gets the first buffer */
	uint64_t charged; /* what is held, kept buffers included */
	uint64_t kept;	  /* of that: buffers that nobody uses */
	uint64_t peak;	  /* of charged */
	struct list free[MEMORY_CLASSES];
};

void memory_init(struct memory *m, uint64_t limit);

/* Free what is kept. Buffers that are in use stay. */
void memory_trim(struct memory *m);

/* The cost charged for a buffer of this size. */
uint64_t memory_cost(size_t bytes);

/* How many more bytes may be used. */
uint64_t memory_room(const struct memory *m);

/* Returns NULL if the budget is used up or the system has no memory. */
struct buffer *memory_get(struct memory *m, size_t bytes);
void memory_put(struct memory *m, struct buffer *b); /* NULL is allowed */

/* Charge bytes that are held elsewhere. Returns false if they exceed the
 * budget. */
bool memory_charge(struct memory *m, uint64_t bytes);
/* The same without a limit, for bytes that are already allocated. */
void memory_charge_over(struct memory *m, uint64_t bytes);
void memory_uncharge(struct memory *m, uint64_t bytes);

#endif
