/* SPDX-License-Identifier: MIT */
/*
 * The pool: the originals of a run by fresh number, from when an example is
 * first to be read until its last serving is over. The pool is only a cache:
 * any serving can be made again from the file, with the same pixels, so that
 * dropping what an original holds is always allowed. Every function needs the
 * turn's lock, but for those of its life. The members of an original belong to
 * the pool, to whoever reads or decodes it, and to damage.c.
 */
#ifndef POOL_ORIGINALS_H
#define POOL_ORIGINALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/turn.h"
#include "dataset/dataset.h"
#include "meter/meter.h"
#include "pool/steps.h"
#include "sample/sample.h"
#include "schedule/schedule.h"

struct originals;

/* See originals.c for what leads from where to where. */
enum original_state {
	ORIGINAL_ABSENT,  /* nothing is held; to be read if on a list */
	ORIGINAL_READING, /* a read_op has it */
	ORIGINAL_ENCODED, /* `encoded` holds the file */
	ORIGINAL_WORKING, /* one worker has it for itself */
	ORIGINAL_KEPT,	  /* `kept` holds what the servings are made from */
	ORIGINAL_FAILED,  /* nothing will come: `error` says why */
};

/* Which list of the pool an original is on. */
enum original_list {
	ON_NONE,
	ON_URGENT, /* to be read for servings that are planned */
	ON_AHEAD,  /* to be read, not planned yet */
	ON_READY,  /* read ahead, not planned yet */
	ON_IDLE,   /* served, and to be served again, but not soon */
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
	uint64_t last_step;	    /* planned, if planned_once */
	bool was_read, was_decoded; /* before: what comes is the second time */
	uint64_t since_ns;	    /* in its state */
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

struct originals_config {
	const struct turn *turn;
	struct memory *memory; /* buffers of originals are from there */
	struct meter *meter;   /* tells the time */
	struct steps *steps;   /* servings are queued there */
	uint64_t count;	       /* of originals, at most */
};

/* -ENOMEM: to be freed, too. */
int originals_new(
	struct originals **out, const struct originals_config *config);
/* Buffers of originals that a read has stay. NULL is allowed. */
void originals_free(struct originals *pool);
/* Its memory, with room for so many. */
uint64_t originals_bytes(uint64_t count);

/* How many may be added; how many are to be read that are not planned. */
uint32_t originals_unused(const struct originals *pool);
uint32_t originals_ahead(const struct originals *pool);
/* The original to read next, or NULL. */
struct original *originals_first_urgent(const struct originals *pool);
struct original *originals_first_ahead(const struct originals *pool);
/* Count one more that is kept for later servings, at this cost in memory; or
 * one less. */
void originals_keep(struct originals *pool, uint64_t cost);
void originals_drop(struct originals *pool, uint64_t cost);
uint32_t originals_kept(const struct originals *pool);
uint64_t originals_kept_bytes(const struct originals *pool);
/* Drop what is not needed soon, one original a call. False: there is none. */
bool originals_reclaim(struct originals *pool);
/* Drop what is read but not being worked on, whatever it is. */
bool originals_reclaim_queued(struct originals *pool);

/* -- Its originals -- */

struct original *original_find(const struct originals *pool, uint64_t fresh);
/* One that is not there yet; there must be a free one. */
struct original *original_add(struct originals *pool,
	const struct schedule_slot *slot, const struct example *example);
/* Not planned yet: it is served as often as that now says. */
void original_serve(struct original *o, const struct schedule_slot *slot);
void original_state(
	struct originals *pool, struct original *o, enum original_state state);
void original_list(
	struct originals *pool, struct original *o, enum original_list on);
/* A serving is planned: queue it, or let it wait for its original. */
void original_plan(
	struct originals *pool, struct original *o, struct serving *s);
/* The step of the serving planned last. False: none was in this run. */
bool original_step_before(const struct original *o, uint64_t *step);
/* The serving waits until there is something to make it from. */
void original_wait(struct original *o, struct serving *s);
/*
 * A worker makes a serving: from the file, which it has alone then, from what
 * is kept, or of a failure. False: another worker has the file, the serving
 * waits.
 */
bool original_take(
	struct originals *pool, struct serving *s, enum original_state *state);
/* Is it a whole file? The index of its example. */
bool original_is_file(const struct original *o, uint64_t *index);
/* The file is there, or what is kept: queue who waits. */
void original_wake(struct originals *pool, struct original *o);
/* The serving is over, and its place in the batch filled. */
void original_served(struct originals *pool, struct serving *s);
void original_drop_encoded(struct originals *pool, struct original *o);
void original_drop_kept(struct originals *pool, struct original *o);
/* Move the original to the front of the read queue. */
void original_read_first(struct originals *pool, struct original *o);
/* Nobody works on it: to be read if it is planned, else put aside. */
void original_settle(struct originals *pool, struct original *o);

#endif
