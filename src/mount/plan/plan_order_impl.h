/* SPDX-License-Identifier: MIT */
/*
 * The order of a plan: the file at each position, the state of each position,
 * and the next position of a file. It takes 9 bytes for each position, and
 * usually 6 for the index. The caller does the locking.
 */
#ifndef PLAN_ORDER_IMPL_H
#define PLAN_ORDER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 *            the cursor passes, it is in a tier
 *  WAITING ------------------------------------> SKIPPED --+
 *     |  \                                          ^      | read
 *     |   \ is planned             came into a tier |      v
 *     |    +------------------> ISSUED -------------+--> SERVED
 *     |                            |           read
 *     +----------------------------+--> RETIRED
 *       nobody will read it, or it cannot be fetched
 */
enum order_state {
	ORDER_WAITING,
	ORDER_SKIPPED,
	ORDER_ISSUED,
	ORDER_SERVED,
	ORDER_RETIRED,
	ORDER_STATE_MASK = 7,
	ORDER_COUNTED = 8, /* flag: in plan.ahead */
	/* Added to SKIPPED once for each item that was fetched ahead and has
	 * not been read yet, at most 15 times. */
	ORDER_UNREAD = 16,
};

/* A run of positions of one epoch. */
struct order_epoch {
	uint64_t number, begin;
};

#define ORDER_EPOCHS_MAX 4096u

struct order {
	uint64_t first, end; /* positions that are kept: [first, end) */
	size_t cap;	     /* of the three arrays; element 0 is `first` */
	uint32_t *file;
	uint32_t *next; /* in the chain of its bucket, a ring */
	uint8_t *state;
	uint32_t *last; /* of each bucket's ring */
	size_t buckets; /* a power of two, or 0 */
	uint8_t *seen;	/* bitmap: files of the last epoch */
	size_t seen_bytes;
	struct order_epoch *epoch;
	unsigned epochs;
	size_t epoch_cap;
};

/* Zeroed memory is an empty order. */
void order_release(struct order *o);

/*
 * Append a position. Positions before `done` may be forgotten. Returns 0,
 * -EEXIST if the file is in this epoch already, -EINVAL if the epoch is before
 * the last one, -ENOSPC if there are too many epochs, or -ENOMEM.
 */
int order_add(struct order *o, uint64_t epoch, uint32_t file, uint64_t done);

static inline uint8_t order_state(const struct order *o, uint64_t pos)
{
	return o->state[pos - o->first];
}

static inline void order_set(struct order *o, uint64_t pos, unsigned state)
{
	o->state[pos - o->first] = (uint8_t)state;
}

static inline uint32_t order_file(const struct order *o, uint64_t pos)
{
	return o->file[pos - o->first];
}

/* Find the first position of the file that was neither served nor retired, nor
 * is skipped and before `horizon`. Returns false if there is none. */
bool order_find(
	struct order *o, uint32_t file, uint64_t horizon, uint64_t *pos);

/* The number of the epoch of a position. */
uint64_t order_epoch_of(const struct order *o, uint64_t pos);

/* The first position of that epoch; 0 without any. */
uint64_t order_epoch_begin(const struct order *o, uint64_t pos);

#endif
