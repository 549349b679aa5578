/* SPDX-License-Identifier: MIT */
/*
 * Distributes the memory of a loader: how much may be read ahead and kept, and
 * what a worker gets for decoding. Each worker has a desk: scratch memory for
 * one decoded image. The budget also knows what is going on that will give
 * memory back: workers at work, and reads. Every function needs the turn's
 * lock, but for those that say otherwise.
 */
#ifndef POOL_BUDGET_H
#define POOL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/turn.h"
#include "meter/meter.h"
#include "pool/outcome.h"
#include "pool/originals.h"
#include "mount_help/mount_help.h"
#include "settings/settings.h"

struct budget;
struct desk;

struct budget_config {
	const struct settings *s;
	struct turn *turn;
	struct memory *memory;
	struct meter *meter;
	struct originals *pool;
	struct outcome *outcome;
	uint64_t outstanding_max; /* originals with servings owed, at most */
};

/* -- Life; without the lock until threads run -- */

/* -ENOMEM: to be freed, too. */
int budget_new(struct budget **out, const struct budget_config *config);
void budget_free(struct budget *budget); /* NULL is allowed */
/* All that is charged for good is charged: what is left now is shared out.
 * `help` may be NULL. */
void budget_open(struct budget *budget, const struct mount_help *help);
/* Give up the scratch memory of all desks. */
void budget_clear(struct budget *budget);

/* -- For reading -- */

/* How many examples may be read before they are planned. */
uint32_t budget_ahead(const struct budget *budget);
/* The memory that is shared out. Constant. */
uint64_t budget_share_bytes(const struct budget *budget);
/* Would buffers of so many bytes fit if all were dropped that can be? */
bool budget_alone(const struct budget *budget, uint64_t bytes);
/* Has one worker all memory for itself? Nothing is begun then. */
bool budget_is_taken(const struct budget *budget);
/* A read of an original begins or ends; how many there are. */
void budget_begin_read(struct budget *budget);
void budget_end_read(struct budget *budget);
uint32_t budget_reading(const struct budget *budget);
/* Workers at work. */
uint32_t budget_working(const struct budget *budget);

/* -- For keeping -- */

/* Room in the pool for what is kept, or NULL. */
struct buffer *budget_to_keep(struct budget *budget, size_t bytes);
/* One more is kept, in so many bytes. */
void budget_count_kept(struct budget *budget, uint64_t cost);
/* May the encoded bytes stay, for later? */
bool budget_for_encoded(const struct budget *budget);

/* -- For decoding -- */

/* The desk of the n-th worker; without the lock. */
struct desk *budget_desk(struct budget *budget, uint32_t n);
/* Its scratch memory, or NULL; the lock, or the worker at work. */
uint8_t *desk_scratch(const struct desk *desk);
/* A worker is at work or not, and holds so many bytes for good. */
void budget_begin_work(struct budget *budget, struct desk *desk);
void budget_end_work(struct budget *budget, struct desk *desk);
void budget_charge(
	struct budget *budget, struct desk *desk, uint64_t held_bytes);

/* The memory that one image takes. */
struct need {
	size_t scratch_bytes; /* 0: it is decoded where it is kept */
	uint64_t extra_bytes; /* that the decoder takes meanwhile */
	uint64_t held_cost;   /* of the buffers that it has already */
};

/*
 * Scratch memory for decoding, and the extra bytes: waits if it must. 0,
 * -EAGAIN: another worker has all memory for itself, try later; -E2BIG: it
 * does not fit; -ECANCELED.
 */
int budget_to_work(
	struct budget *budget, struct desk *desk, const struct need *need);
/* Release the extra bytes that budget_to_work() charged. */
void budget_done(
	struct budget *budget, struct desk *desk, uint64_t extra_bytes);
/* This worker, if it has all memory, gives it back. */
void budget_give_back(struct budget *budget, const struct desk *desk);

#endif
