/* SPDX-License-Identifier: MIT */
/*
 * One budget in bytes for everything that a loader holds, and buffers that are
 * charged to it. The size of a buffer is rounded up to a size class;
 * neighbouring classes are an eighth to a quarter apart. A buffer that is put
 * back is kept for reuse until its bytes are needed for a buffer of another
 * class, so a loader that has seen all its sizes allocates nothing more. The
 * caller must hold its own lock in all calls.
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/list.h"

#define MEMORY_CLASSES 128

struct buffer {
	struct list node; /* private to memory.c; in a list of `free` */
	unsigned size_class;
	uint8_t *data; /* aligned to 64 bytes */
	size_t bytes;  /* capacity of `data` */
};

struct memory {
	/* The budget in bytes, like the members below; set before the first
	 * buffer */
	uint64_t limit;
	uint64_t charged; /* bytes of all buffers, including kept ones */
	uint64_t kept;	  /* the part of `charged` in buffers kept for reuse */
	uint64_t peak;	  /* the maximum of `charged` so far */
	struct list free[MEMORY_CLASSES];
};

void memory_init(struct memory *m, uint64_t limit);

/* Free the buffers that are kept for reuse. Buffers in use stay. */
void memory_trim(struct memory *m);

/* Returns the bytes that a buffer of this capacity is charged with. */
uint64_t memory_cost(size_t bytes);

/* Returns the largest capacity of a buffer that is charged with `cost` bytes at
 * most, or that of the smallest buffer. */
size_t memory_largest(uint64_t cost);

/* Returns how many more bytes may be charged. */
uint64_t memory_room(const struct memory *m);

/* Get a buffer with at least this capacity. Returns NULL if the budget is used
 * up or the system has no memory. */
struct buffer *memory_get(struct memory *m, size_t bytes);
void memory_put(struct memory *m, struct buffer *b); /* NULL is allowed */
/* Make a buffer as small as memory_get() would make it for `bytes` bytes, which
 * are kept. Returns the buffer to use from then on. */
struct buffer *memory_shrink(struct memory *m, struct buffer *b, size_t bytes);

/* Charge bytes of memory that the caller allocates itself. Returns false if
 * this would exceed the budget. */
bool memory_charge(struct memory *m, uint64_t bytes);
/* Charge bytes of such memory even if this exceeds the budget, because they are
 * already allocated. */
void memory_charge_over(struct memory *m, uint64_t bytes);
void memory_uncharge(struct memory *m, uint64_t bytes);

#endif
