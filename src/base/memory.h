/* SPDX-License-Identifier: MIT */
/*
 * One budget of bytes for everything a loader holds, and buffers out of it.
 * Buffers come in sizes an eighth to a quarter apart and are kept for reuse
 * until their bytes are wanted for another size, so that a loader that has met
 * its sizes allocates nothing. Locking is the caller's.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define MEMORY_CLASSES 128

struct buffer {
	struct list node; /* private */
	unsigned size_class;
	uint8_t *data; /* 64-byte aligned */
	size_t bytes;  /* that data has room for */
};

struct memory {
	uint64_t limit;	  /* the owner's to set, before the first buffer */
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

/* Bytes that are in use; how many more may be. */
uint64_t memory_used(const struct memory *m);
uint64_t memory_room(const struct memory *m);

/* NULL: there is no room, or the system has no memory. */
struct buffer *memory_get(struct memory *m, size_t bytes);
void memory_put(struct memory *m, struct buffer *b); /* NULL is allowed */

/* For bytes that are held elsewhere. False: there is no room. */
bool memory_charge(struct memory *m, uint64_t bytes);
/* The same, for bytes that are there already. */
void memory_charge_over(struct memory *m, uint64_t bytes);
void memory_uncharge(struct memory *m, uint64_t bytes);

#endif
