/* SPDX-License-Identifier: MIT */
/*
 * The pool: the originals of a run by fresh number, from the moment an example
 * is named for reading until its last serving is over. The pool is only a
 * cache: any serving can be made again from the file, with the same pixels, so
 * that dropping what an original holds is always allowed. Every function needs
 * the turn's lock, except originals_new() and originals_free(). The members of
 * an original belong to the pool, to the reader or worker that has it, and to
 * damage.c.
 */
#ifndef ENGINE_ORIGINALS_IMPL_H
#define ENGINE_ORIGINALS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "loader/core/memory.h"
#include "loader/core/turn.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/steps_impl.h"
#include "loader/engine/sample.h"
#include "common/schedule/schedule.h"

struct originals;

/* originals.c has a diagram of the transitions. */
enum original_state {
	ORIGINAL_ABSENT,  /* nothing is held; to be read if on a list */
	ORIGINAL_READING, /* a read_op has it */
	ORIGINAL_ENCODED, /* `encoded` holds the file */
	ORIGINAL_WORKING, /* one worker has it for itself */
	ORIGINAL_KEPT,	  /* `kept` holds what the servings are made from */
	ORIGINAL_FAILED,  /* nothing will come: `error` says why */
};

/* The list of the pool that an original is on. */
enum original_list {
	ON_NONE,
	ON_URGENT,  /* to be read for servings that are planned */
	ON_AHEAD,   /* to be read, not planned yet */
	ON_READY,   /* read ahead, not planned yet */
	ON_IDLE,    /* served, and to be served again, but not soon */
	ON_STARVED, /* planned and read, but there was no memory to decode it */
};

struct original {
	struct original *next; /* in its bucket, or free */
	struct list node;      /* of the list `on` */
	enum original_list on;
	enum original_state state;
	struct list waiting;	   /* servings that need it */
	struct schedule_slot slot; /* of the first serving that was met */
	/* The example that is read: that of the slot, or a substitute. */
	uint64_t index;
	struct example example;
	uint32_t attempt;    /* which substitute; 0: none */
	uint32_t tries;	     /* reads that failed in a way that may pass */
	int error;	     /* of the example of the slot, or 0 */
	char *why;	     /* the message with it, or NULL */
	int32_t error_stage; /* enum refrain_stage_name */
	uint64_t error_index;
	uint32_t left;	  /* servings to come, planned or not */
	uint32_t planned; /* of those: planned */
	uint32_t low;	  /* servings below are over */
	uint32_t users;	  /* workers that look at `kept` */
	bool planned_once;
	bool incoming; /* read, or being read, for a serving that is to come */
	bool was_read, was_decoded; /* before: what comes is the second time */
	uint32_t idle_at;	/* ON_IDLE: its place; see idle_files_impl.h */
	uint64_t last_step;	/* planned, if planned_once */
	uint64_t next_step;	/* ON_IDLE: of the next serving */
	uint64_t starved_bytes; /* ON_STARVED: memory that it needs */
	uint64_t since_ns;	/* in its state */
	/* The image; owned by the worker that has the original, then constant.
	 */
	struct picture picture;
	/* Encoded bytes, after `skip` bytes that are a label. */
	struct buffer *encoded;
	size_t encoded_bytes, skip;
	size_t size_hint; /* how much room a read should have; 0: unknown */
	int64_t label;
	/* BEFORE: decoded; else: the sample itself. */
	struct buffer *kept;
	size_t kept_bytes;
	struct image image;		  /* jpeg: points into kept */
	uint32_t width, height, channels; /* decode(): what it said */
};

/* -- The pool -- */

/* `count` of them at most. -ENOMEM: to be freed, too. */
int originals_new(struct originals **out, const struct engine_parts *parts,
	uint64_t count);
/* Buffers of originals that a read has stay. NULL is allowed. */
void originals_free(struct originals *pool);
/* Its memory, with room for so many. */
uint64_t originals_bytes(uint64_t count);

/* The number of originals that may be added, and of unplanned ones that are to
 * be read. */
uint32_t originals_unused(const struct originals *pool);
uint32_t originals_ahead(const struct originals *pool);
/* The original to read next, or NULL. */
struct original *originals_first_urgent(const struct originals *pool);
struct original *originals_first_ahead(const struct originals *pool);
/* Count one more, or one less, original kept for later servings, with this cost
 * in memory. */
void originals_keep(struct originals *pool, uint64_t cost);
void originals_drop(struct originals *pool, uint64_t cost);
uint32_t originals_kept(const struct originals *pool);
uint64_t originals_kept_bytes(const struct originals *pool);
/* The number of originals that are read, or being read, and whose bytes no
 * serving has used yet. */
uint32_t originals_incoming(const struct originals *pool);
/* The original that has waited longest for memory to decode it, or NULL;
 * `bytes`, which may be NULL, gets how much that needs. */
struct original *originals_first_starved(
	const struct originals *pool, uint64_t *bytes);
/* Drop the data of the idle original that is needed last, if that is after the
 * batch of `step`. Returns false if there is none. */
bool originals_reclaim_idle(struct originals *pool, uint64_t step);
/* Drop the data of one original that was read and not used. Returns false if
 * there is none. */
bool originals_reclaim_unused(struct originals *pool);

/* -- Its originals -- */

struct original *original_find(const struct originals *pool, uint64_t fresh);
/* Add an original that is not in the pool yet; one must be free. */
struct original *original_add(struct originals *pool,
	const struct schedule_slot *slot, const struct example *example);
/* Set how often an original is served, as `slot` now says. It is not planned
 * yet. */
void original_serve(struct original *o, const struct schedule_slot *slot);
void original_state(
	struct originals *pool, struct original *o, enum original_state state);
void original_list(
	struct originals *pool, struct original *o, enum original_list on);
/* A serving is planned: queue it, or let it wait for its original. */
void original_plan(
	struct originals *pool, struct original *o, struct serving *s);
/* Get the step of the last planned serving. Returns false if none was planned
 * in this run. */
bool original_step_before(const struct original *o, uint64_t *step);
/* The serving waits until there is something to make it from. */
void original_wait(struct original *o, struct serving *s);
/*
 * A worker starts to make a serving: from the file, which the worker then has
 * for itself, from the kept data, or of a failure. Returns false if another
 * worker has the file; the serving then waits.
 */
bool original_take(
	struct originals *pool, struct serving *s, enum original_state *state);
/* Is the original a whole file? If so, get the index of its example. */
bool original_is_file(const struct original *o, uint64_t *index);
/* The step that needs the original after the serving that a worker makes now.
 */
uint64_t original_next_step(
	const struct originals *pool, const struct original *o);
/* The serving is over, and its place in the batch filled. */
void original_served(struct originals *pool, struct serving *s);
void original_drop_encoded(struct originals *pool, struct original *o);
void original_drop_kept(struct originals *pool, struct original *o);
/* Move the original to the front of the read queue. */
void original_read_first(struct originals *pool, struct original *o);
/* The bytes that were read have been used. */
void original_used(struct originals *pool, struct original *o);
/* There is no memory to decode the original: it and the serving wait until
 * original_feed(). */
void original_starve(struct originals *pool, struct original *o,
	struct serving *s, uint64_t bytes);
/* Queue the servings of a starved original. */
void original_feed(struct originals *pool, struct original *o);
/* Nobody works on the original any more: list it for reading if it is planned,
 * otherwise put it aside. */
void original_settle(struct originals *pool, struct original *o);

#endif
