/* SPDX-License-Identifier: MIT */
/*
 * Distributes the memory of a loader: decides how much may be read ahead and
 * kept, and what a worker gets for decoding. Each worker has a desk: scratch
 * memory for one decoded image. The budget also counts the activities that will
 * free memory: busy workers, and reads. Every function needs the turn's lock
 * unless its comment says otherwise.
 */
#ifndef ENGINE_BUDGET_IMPL_H
#define ENGINE_BUDGET_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/core/memory.h"
#include "loader/core/turn.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/originals_impl.h"
#include "loader/mount_help/mount_help.h"
#include "loader/core/settings.h"

struct budget;
struct desk;
struct field_maker;

/* -- Creation and end; these need no lock before threads run --------------- */

/* At most `outstanding_max` originals have outstanding servings at a time.
 * Returns 0 or -ENOMEM. Free *out after a failure, too. */
int budget_new(struct budget **out, const struct engine_parts *parts,
	uint64_t outstanding_max);
void budget_free(struct budget *budget); /* NULL is allowed */
/* Call this when all permanent memory was charged. From then on, the budget
 * distributes the rest of the memory. */
void budget_open(struct budget *budget);
/* Free the scratch memory of all desks. */
void budget_clear(struct budget *budget);

/* -- Reads ----------------------------------------------------------------- */

/* Returns how many examples may be read before they are planned. */
uint32_t budget_ahead(const struct budget *budget);
/* Returns the bytes that the budget distributes; constant after
 * budget_open(). */
uint64_t budget_rest_bytes(const struct budget *budget);
/*
 * May a read that takes `bytes` bytes begin now? This keeps memory for decoding
 * free. If there are echoes and memory is too small for all originals, examples
 * that no serving has used yet get only a part of it, so that the others can be
 * kept.
 */
bool budget_may_read(const struct budget *budget, uint64_t bytes);
/* Like budget_may_read(), for an example that is not planned yet. */
bool budget_may_read_ahead(const struct budget *budget, uint64_t bytes);
/* May a read make room by dropping data that is kept for later servings? */
bool budget_may_drop(const struct budget *budget);
/* Estimate, from the files and images so far, the memory limit with which
 * hardly any file would be read twice, in bytes. */
uint64_t budget_wanted_bytes(const struct budget *budget);
/* Would `bytes` bytes fit if everything that can be dropped was dropped? The
 * answer is always the same. */
bool budget_alone(const struct budget *budget, uint64_t bytes);
/* Returns the most bytes for which budget_alone() is true; constant after
 * budget_open(). */
uint64_t budget_alone_bytes(const struct budget *budget);
/*
 * Does one worker have all memory for itself? Then nothing else may begin.
 */
bool budget_is_taken(const struct budget *budget);
/* Is no activity running that will free memory? */
bool budget_at_rest(const struct budget *budget);
/* Call the first two when a read of an original begins and ends.
 * budget_reading() returns the number of running reads. */
void budget_begin_read(struct budget *budget);
void budget_end_read(struct budget *budget);
uint32_t budget_reading(const struct budget *budget);
/* Returns the number of busy workers. */
uint32_t budget_working(const struct budget *budget);

/* -- Keeping data ---------------------------------------------------------- */

/* Get a buffer for decoded data that the pool keeps. Returns NULL if there is
 * no room. */
struct buffer *budget_to_keep(struct budget *budget, size_t bytes);
/* Count one more kept original, with its cost in bytes. */
void budget_count_kept(struct budget *budget, uint64_t cost);
/* May the encoded bytes be kept until the batch of `step`? This drops data that
 * is needed after that batch to make room for them. */
bool budget_for_encoded(const struct budget *budget, uint64_t step);

/* -- Decoding -------------------------------------------------------------- */

/* Returns the desk of the n-th worker, and charges what its sampler and its
 * maker of fields (which may be NULL) hold. */
struct desk *budget_desk(struct budget *budget, uint32_t n,
	struct sampler *sampler, struct field_maker *fields);
/* Returns the scratch memory of a desk, or NULL. Needs the lock, unless the
 * desk's worker calls this while it is busy. */
uint8_t *desk_scratch(const struct desk *desk);
/* Call the first two when a worker begins and ends a serving. Then
 * budget_charge() charges what its sampler and maker of fields hold now. */
void budget_begin_work(struct budget *budget, struct desk *desk);
void budget_end_work(struct budget *budget, struct desk *desk);
void budget_charge(struct budget *budget, struct desk *desk);
/* Free the scratch memory of all desks, and the memory that their samplers have
 * allocated since. Call this only at rest. */
void budget_trim(struct budget *budget);

/* The memory that decoding one image needs. */
struct need {
	/* Size of the image; 0: it is decoded into the memory where it is
	 * kept */
	size_t scratch_bytes;
	/* Bytes that the decoder takes during the call */
	uint64_t extra_bytes;
	uint64_t new_extra_bytes; /* the same for a worker's first image */
	/* Cost of the buffers that the original has already, if they are no
	 * larger than necessary */
	uint64_t held_cost;
};

/* Get scratch memory for decoding, and charge the extra bytes. Returns 0;
 * -EAGAIN if there is not enough memory now (see original_starve()); -E2BIG if
 * the image can never fit; or -ENOMEM if the system has no memory. */
int budget_to_work(
	struct budget *budget, struct desk *desk, const struct need *need);
/* Returns the bytes that budget_to_work() would charge for this image. */
uint64_t need_bytes(const struct need *need);
/* Release the extra bytes that budget_to_work() charged. */
void budget_done(
	struct budget *budget, struct desk *desk, uint64_t extra_bytes);
/* May a starved original be decoded now? */
bool budget_feeds(const struct budget *budget);
/* Queue the first starved original for the worker of this desk. If there is not
 * enough memory for it, this worker gets all memory. */
void budget_feed(struct budget *budget, const struct desk *desk);
/* End the state in which this worker has all memory for itself; does nothing
 * otherwise. */
void budget_give_back(struct budget *budget, const struct desk *desk);

#endif
