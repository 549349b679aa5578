/* SPDX-License-Identifier: MIT */
/*
 * The order of a plan: the file and the state of each position, and an index to
 * find the next position of a file. It takes 9 bytes for each position, and the
 * index usually 6. The caller holds a lock.
 */
#ifndef PLAN_ORDER_IMPL_H
#define PLAN_ORDER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The states of a position:
 *
 *           the cursor passes: a tier has it
 *  WAITING ------------------------------------> SKIPPED --+
 *     |  \                                          ^      | read
 *     |   \ is fetched ahead       a tier has got it |      v
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
	ORDER_COUNTED = 8, /* flag: the position is counted in plan.ahead */
	/* Added to the state once for each item that was fetched ahead into a
	 * tier and has not been read there, at most 15 times. */
	ORDER_UNREAD = 16,
};

/* An epoch: its number, and its first position. */
struct order_epoch {
	uint64_t number, begin;
};

#define ORDER_EPOCHS_MAX 4096u

struct order {
	/* Positions that are not forgotten: [first, end) */
	uint64_t first, end;
	/* The next three arrays have this many elements. Element 0 belongs to
	 * position `first`. */
	size_t cap;
	uint32_t *file;
	uint32_t *next; /* next position in the same bucket, a ring */
	uint8_t *state;
	uint32_t *last; /* last position of each bucket's ring */
	size_t buckets; /* a power of two, or 0 */
	uint8_t *seen;	/* bitmap of the files in the last epoch */
	size_t seen_bytes;
	uint8_t *named;	/* bitmap of the files in any epoch */
	size_t named_bytes;
	struct order_epoch *epoch;
	unsigned epochs;
	size_t epoch_cap;
};

/* Zeroed memory is an empty order. */
void order_release(struct order *o);

/*
 * Append a position. Positions before `done` may be forgotten. Returns 0;
 * -EEXIST if the file has a position in this epoch already; -EINVAL if the
 * epoch is before the last one; -ENOSPC if there are too many epochs; or
 * -ENOMEM.
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
 * skipped at a position before `horizon`. Returns false if there is none. */
bool order_find(
	struct order *o, uint32_t file, uint64_t horizon, uint64_t *pos);

/* Was the file ever added? */
static inline bool order_names(const struct order *o, uint64_t file)
{
	return file / 8 < o->named_bytes &&
		(o->named[file / 8] & 1u << file % 8);
}

/* Returns the epoch of a position; all members are 0 if there is no epoch. */
struct order_epoch order_epoch_at(const struct order *o, uint64_t pos);

#endif
