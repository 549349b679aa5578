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
	ORIGINAL_ABSENT,  /* holds nothing; will be read if it is on a list */
	ORIGINAL_READING, /* a read_op has it */
	ORIGINAL_ENCODED, /* `encoded` holds the file */
	ORIGINAL_WORKING, /* one worker has it for itself */
	ORIGINAL_KEPT,	  /* `kept` holds data from which servings are made */
	ORIGINAL_FAILED,  /* cannot be made; `error` says why */
};

/* The list of the pool that an original is on. */
enum original_list {
	ON_NONE,
	ON_URGENT,  /* to be read for servings that are planned */
	ON_AHEAD,   /* to be read, not planned yet */
	ON_READY,   /* has been read ahead, not planned yet */
	ON_IDLE,    /* has been served, will be again, but not soon */
	ON_STARVED, /* planned and read, but there was no memory to decode it */
};

/* A part of an example that has several. */
struct part_span {
	size_t at; /* in `encoded` or `kept`; PART_ABSENT: it has none */
	size_t bytes;
	size_t file_bytes; /* when it was read; 0: unknown */
};

#define PART_ABSENT SIZE_MAX

struct original {
	struct original *next; /* in its bucket, or free */
	struct list node;      /* of the list `on` */
	enum original_list on;
	enum original_state state;
	struct list waiting; /* servings that need it */
	/* The place in the schedule of the first serving that needs it */
	struct schedule_slot slot;
	/* The example that is read: that of the slot, or a substitute. */
	uint64_t index;
	struct example example;
	uint32_t attempt;    /* which substitute; 0: none */
	uint32_t tries;	     /* reads that failed in a way that may pass */
	int error;	     /* of the example of the slot, or 0 */
	char *why;	     /* the message for `error`, or NULL */
	int32_t error_stage; /* enum refrain_stage_name */
	uint64_t error_index;
	uint32_t left;	  /* servings to come, planned or not */
	uint32_t planned; /* of those: planned */
	uint32_t low;	  /* all servings below this number are over */
	uint32_t users;	  /* workers that look at `kept` */
	bool planned_once;
	bool incoming; /* read, or being read, for a serving that is to come */
	bool was_read, was_decoded; /* at least once before */
	uint32_t idle_at;	/* ON_IDLE: its place; see idle_files_impl.h */
	uint64_t last_step;	/* the last planned one, if planned_once */
	uint64_t next_step;	/* ON_IDLE: the step of its next serving */
	uint64_t starved_bytes; /* ON_STARVED: memory that it needs */
	uint64_t since_ns;	/* when it entered its state */
	/* The image; owned by the worker that has the original, then constant.
	 */
	struct picture picture;
	/* Encoded bytes, after `skip` bytes that are a label. */
	struct buffer *encoded;
	size_t encoded_bytes, skip;
	size_t size_hint; /* expected size of the file; 0: unknown */
	int64_t label;
	/* Echo point `before`: the decoded region; else the sample itself. */
	struct buffer *kept;
	size_t kept_bytes;
	struct image image; /* jpeg: points into kept */
	/* Set by the user's decode() */
	uint32_t width, height, channels;
};

/* -- The pool -- */

/* A pool for at most `count` originals. Returns 0 or -ENOMEM. Free *out after a
 * failure, too. */
int originals_new(struct originals **out, const struct engine_parts *parts,
	uint64_t count);
/* Does not free buffers that running reads use. NULL is allowed. */
void originals_free(struct originals *pool);
/* The memory of a pool for `count` originals with so many parts. */
uint64_t originals_bytes(uint64_t count, uint32_t parts);

/* The number of originals that may be added, and the number of originals that
 * are to be read but not planned yet. */
uint32_t originals_unused(const struct originals *pool);
uint32_t originals_ahead(const struct originals *pool);
/* The original to read next, or NULL. */
struct original *originals_first_urgent(const struct originals *pool);
struct original *originals_first_ahead(const struct originals *pool);
/* Count one more original (or one less) that is kept for later servings and
 * takes `cost` bytes of memory. */
void originals_keep(struct originals *pool, uint64_t cost);
void originals_drop(struct originals *pool, uint64_t cost);
uint32_t originals_kept(const struct originals *pool);
uint64_t originals_kept_bytes(const struct originals *pool);
/* The number of originals that have been read or are being read, and whose
 * bytes no serving has used yet. */
uint32_t originals_incoming(const struct originals *pool);
/* The original that has waited longest for memory to decode it, or NULL. If
 * `bytes` is not NULL, *bytes is set to the memory that it needs. */
struct original *originals_first_starved(
	const struct originals *pool, uint64_t *bytes);
/* Drop the data of the idle original that is needed last, if that is after the
 * batch of `step`. Returns false if there is none. */
bool originals_reclaim_idle(struct originals *pool, uint64_t step);
/* Drop the data of one original that was read but not used yet. Returns false
 * if there is none. */
bool originals_reclaim_unused(struct originals *pool);

/* -- Its originals -- */

/* The parts of an original, of dataset_parts(); NULL: it has only one. Needs no
 * lock: they belong to the reader or worker that has the original, then they
 * are constant. */
struct part_span *original_parts(
	const struct originals *pool, const struct original *o);

struct original *original_find(const struct originals *pool, uint64_t fresh);
/* Add an original that is not in the pool yet; one must be free. */
struct original *original_add(struct originals *pool,
	const struct schedule_slot *slot, const struct example *example);
/* Another example takes its place: the sizes of files are unknown. */
void original_forget_sizes(struct originals *pool, struct original *o);
/* Set from `slot` how often an original is served. No serving of it may be
 * planned yet. */
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
 * A worker starts to make a serving. *state says from what: ENCODED: from the
 * file, which the worker then has for itself; KEPT: from the kept data; FAILED:
 * there is nothing. Returns false if another worker has the file; then the
 * serving waits.
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
/* Note that the bytes that were read have been used. */
void original_used(struct originals *pool, struct original *o);
/* There is no memory to decode the original: it and the serving wait until
 * original_feed(). */
void original_starve(struct originals *pool, struct original *o,
	struct serving *s, uint64_t bytes);
/* Queue the servings of a starved original. */
void original_feed(struct originals *pool, struct original *o);
/* No reader or worker has the original any more: queue its servings, list it
 * for reading, or put it aside, depending on its state. */
void original_settle(struct originals *pool, struct original *o);

#endif
