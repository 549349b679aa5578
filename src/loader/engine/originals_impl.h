/* SPDX-License-Identifier: MIT */
/*
 * The pool: the originals of a run by their fresh numbers, from the moment an
 * example is named for reading until its last serving is over. The pool is only
 * a cache: any serving can be made again from the file, with the same pixels,
 * so the data of an original may always be dropped. Every function needs the
 * turn's lock, except originals_new() and originals_free(). The members of an
 * original are used by the pool, by the reader or worker that has the original,
 * and by damage.c.
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

/* The states of an original. originals.c has a diagram of the transitions. */
enum original_state {
	ORIGINAL_ABSENT,  /* has no data; it is read if it is on a list */
	ORIGINAL_READING, /* a read_op has it, and reads its file */
	ORIGINAL_ENCODED, /* `encoded` holds the file */
	ORIGINAL_WORKING, /* one worker has it, and no other may use it */
	ORIGINAL_KEPT,	  /* `kept` holds data from which servings are made */
	ORIGINAL_FAILED,  /* no sample can be made; `error` says why */
};

/* The lists of the pool. An original is on at most one of them. */
enum original_list {
	ON_NONE,
	ON_URGENT, /* to be read for planned servings */
	ON_AHEAD,  /* to be read ahead: no serving of it is planned yet */
	ON_READY,  /* the file was read ahead, but is not planned yet */
	ON_IDLE,   /* will be served again, but that is not planned yet */
	/* The file was read for planned servings, but there was no memory to
	 * decode it */
	ON_STARVED,
};

/* A part of an original, if examples have several parts. */
struct part_span {
	size_t at; /* offset in the buffer; PART_ABSENT: no such part */
	size_t bytes;
	size_t file_bytes; /* size of the file when it was read; 0: unknown */
};

#define PART_ABSENT SIZE_MAX

struct original {
	/* In its bucket, or in the list of free originals */
	struct original *next;
	struct list node; /* in the list `on` */
	enum original_list on;
	enum original_state state;
	struct list waiting; /* servings that wait for this original */
	/* The slot in the schedule of the first serving that needs it */
	struct schedule_slot slot;
	/* The number of the example to read: that of the slot, or a
	 * substitute. */
	uint64_t index;
	struct example example;
	uint32_t attempt; /* number of the substitute; 0: the example itself */
	/* Number of reads that failed for a reason that may be temporary */
	uint32_t tries;
	int error;	     /* error of the example of the slot, or 0 */
	char *why;	     /* the message for `error`, or NULL */
	int32_t error_stage; /* enum refrain_stage_name */
	uint64_t error_index;
	uint32_t left;	  /* remaining servings, planned or not */
	/* Numbers of remaining servings that are planned and are made here, or
	 * are pulled */
	uint32_t planned, pulled;
	uint32_t low;	  /* all servings with lower numbers are over */
	uint32_t users;	  /* number of workers that are using `kept` */
	bool planned_once;
	/* The file was read, or is being read, but no serving has used it
	 * yet */
	bool incoming;
	/* The file was read (decoded) at least once */
	bool was_read, was_decoded;
	/* ON_IDLE: index in the heap of idle_files_impl.h */
	uint32_t idle_at;
	uint64_t last_step;	/* last planned step; valid if planned_once */
	uint64_t next_step;	/* ON_IDLE: next step that needs the original */
	uint64_t starved_bytes; /* ON_STARVED: bytes needed to decode */
	uint64_t since_ns;	/* when `state` was last changed */
	/* What is known about the image. The worker that has the original may
	 * change it; later it is constant. */
	struct picture picture;
	/* The encoded bytes. The first `skip` bytes of the buffer are a
	 * label. */
	struct buffer *encoded;
	size_t encoded_bytes, skip;
	/* The bytes of memory to read it into, as far as they are known; 0:
	 * nothing is known. After the read, this is exact. */
	size_t size_hint;
	int64_t label;
	/* With echo point `before`, the decoded region, otherwise the sample
	 * itself. */
	struct buffer *kept;
	size_t kept_bytes;
	struct image image; /* only for images; its data is in `kept` */
	/* Set by the user's decode() */
	uint32_t width, height, channels;
};

/* -- The pool -- */

/* Create a pool for at most `count` originals. Returns 0 or -ENOMEM. Free *out
 * after a failure, too. */
int originals_new(struct originals **out, const struct engine_parts *parts,
	uint64_t count);
/* Free the pool, except buffers that running reads use. NULL is allowed. */
void originals_free(struct originals *pool);
/* Returns the bytes of a pool for `count` originals with `parts` parts. */
uint64_t originals_bytes(uint64_t count, uint32_t parts);

/* Return the number of originals that can still be added, and the number of
 * originals that must be read but are not planned yet. */
uint32_t originals_unused(const struct originals *pool);
uint32_t originals_ahead(const struct originals *pool);
/* Return the next original to read for a planned serving, or to read ahead, or
 * NULL. */
struct original *originals_first_urgent(const struct originals *pool);
struct original *originals_first_ahead(const struct originals *pool);
/* Count one more (or one less) original whose data is kept for later servings
 * and takes `cost` bytes of memory. */
void originals_keep(struct originals *pool, uint64_t cost);
void originals_drop(struct originals *pool, uint64_t cost);
uint32_t originals_kept(const struct originals *pool);
uint64_t originals_kept_bytes(const struct originals *pool);
/* Returns the number of originals that were read or are being read, but whose
 * bytes no serving has used yet. */
uint32_t originals_incoming(const struct originals *pool);
/* Returns the original that has waited for memory to decode it for the longest
 * time, or NULL. If `bytes` is not NULL, *bytes is set to that memory. */
struct original *originals_first_starved(
	const struct originals *pool, uint64_t *bytes);
/* Drop the data of the idle original that is needed last, if it is needed after
 * the batch of `step`. Returns false if there is no such original. */
bool originals_reclaim_idle(struct originals *pool, uint64_t step);
/* Drop the data of one original that was read but not used yet. Returns false
 * if there is no such original. */
bool originals_reclaim_unused(struct originals *pool);

/* -- One original ---------------------------------------------------------- */

/* Returns the dataset_parts() parts of an original, or NULL if it has only one.
 * This needs no lock: the parts belong to the reader or worker that has the
 * original, and are constant afterwards. */
struct part_span *original_parts(
	const struct originals *pool, const struct original *o);

struct original *original_find(const struct originals *pool, uint64_t fresh);
/* Add an original for a fresh example that is not in the pool yet.
 * originals_unused() must not be 0. */
struct original *original_add(struct originals *pool,
	const struct schedule_slot *slot, const struct example *example);
/* Forget the sizes of files, because another example is read in its place. */
void original_forget_sizes(struct originals *pool, struct original *o);
/* Set the number of servings of an original from `slot`. No serving of it may
 * be planned yet. */
void original_serve(struct original *o, const struct schedule_slot *slot);
void original_state(
	struct originals *pool, struct original *o, enum original_state state);
void original_list(
	struct originals *pool, struct original *o, enum original_list on);
/* Note that a serving is planned: queue it, or make it wait for its
 * original. */
void original_plan(
	struct originals *pool, struct original *o, struct serving *s);
/* Note that a serving is planned whose sample is pulled. The original must be
 * ABSENT. */
void original_pull(
	struct originals *pool, struct original *o, struct serving *s);
/* Note that the sample of such a serving is in the batch. */
void original_pulled(struct originals *pool, struct serving *s);
/* Note that the sample of such a serving is made here instead. */
void original_make(struct originals *pool, struct serving *s);
/* Get the step of the last planned serving. Returns false if no serving was
 * planned in this run. */
bool original_step_before(const struct original *o, uint64_t *step);
/* Make the serving wait until the original has data for it. */
void original_wait(struct original *o, struct serving *s);
/*
 * Begin to make a serving for a worker. *state is set to what it is made from.
 * ENCODED: the file, which no other worker may use now; KEPT: the kept data;
 * FAILED: nothing. Returns false if another worker has the file; then the
 * serving waits.
 */
bool original_take(
	struct originals *pool, struct serving *s, enum original_state *state);
/* Is the original a whole file? If so, *index is set to the number of its
 * example. */
bool original_is_file(const struct original *o, uint64_t *index);
/* Returns the step that needs the original after the serving that a worker is
 * making. */
uint64_t original_next_step(
	const struct originals *pool, const struct original *o);
/* Note that the serving is over, and its sample in the batch. */
void original_served(struct originals *pool, struct serving *s);
void original_drop_encoded(struct originals *pool, struct original *o);
void original_drop_kept(struct originals *pool, struct original *o);
/* Put the original first in its list of originals to read. */
void original_read_first(struct originals *pool, struct original *o);
/* Note that the bytes that were read were used. */
void original_used(struct originals *pool, struct original *o);
/* Note that there is no memory to decode the original. It and the serving wait
 * until original_feed(). */
void original_starve(struct originals *pool, struct original *o,
	struct serving *s, uint64_t bytes);
/* Queue the servings of a starved original. */
void original_feed(struct originals *pool, struct original *o);
/* Call this when no reader or worker has the original any more. Depending on
 * its state, its servings are queued, or it is listed for reading or as
 * idle. */
void original_settle(struct originals *pool, struct original *o);

#endif
