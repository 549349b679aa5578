/* SPDX-License-Identifier: MIT */
/*
 * The ring of steps: the unfinished batches, with the oldest first, and the
 * servings of each. A step belongs to the planner until it is published, then
 * to the workers until its last serving is done, then to the caller. Every
 * function needs the turn's lock, except steps_new() and steps_free().
 */
#ifndef ENGINE_STEPS_IMPL_H
#define ENGINE_STEPS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "loader/core/turn.h"
#include "common/schedule/schedule.h"
#include "loader/pull/pull.h"

struct original;
struct slab;
struct step;
struct steps;

enum serving_state {
	SERVING_WAITS, /* for its original, or for a pull */
	SERVING_QUEUED,
	SERVING_WORKS,
	SERVING_DONE
};

struct serving {
	/* in a list of the serving's original, or in step->ready */
	struct list node;
	struct step *step;
	struct original *original;
	uint32_t place, echo;
	/* Steps since the previous serving of its example; UINT64_MAX:
	 * unknown */
	uint64_t lag;
	uint64_t since_ns;
	enum serving_state state;
	struct pull pull; /* of its sample; NONE: it is made here */
};

/* An unfinished batch. */
struct step {
	uint64_t number;
	uint32_t count, left; /* numbers of servings, and of unfinished ones */
	struct list ready;    /* queued servings, which a worker can take */
	struct slab *slab;
	/* Belongs to the planner until the step is published */
	struct schedule_slot *slots;
	struct serving *servings;
	/* sum and minimum of the lags of the echoes in this step */
	uint64_t lag_sum, lag_min;
	uint32_t lags, duplicates, fresh, epochs_ended;
	uint32_t substituted, zero_filled;
	uint32_t damaged; /* number of damaged fresh examples */
	uint64_t epoch, ended_epoch;
	/* The failure with the lowest index in the batch. */
	int error;
	uint32_t error_place;
	int32_t error_stage;
	uint64_t error_index;
	char *why;
};

/* Create a ring of at most `room` steps with at most `batch` servings. Returns
 * 0 or -ENOMEM. Free *out after a failure, too. */
int steps_new(struct steps **out, const struct turn *turn, uint32_t room,
	uint32_t batch);
void steps_free(struct steps *s); /* NULL is allowed */
/* Returns the bytes of a ring of this size. */
uint64_t steps_bytes(uint32_t room, uint32_t batch);
/* Set the number of the first step. Call this before any step is published. */
void steps_begin(struct steps *s, uint64_t first);

/* The ring has the steps from steps_first() to steps_end() - 1. The first one
 * is the next batch. */
uint64_t steps_first(const struct steps *s);
uint64_t steps_end(const struct steps *s);
struct step *steps_at(const struct steps *s, uint64_t number);
/* Returns the oldest step, or NULL if the ring is empty. */
struct step *steps_oldest(const struct steps *s);
/* Returns the oldest step if all its servings are done, else NULL. */
struct step *steps_finished(const struct steps *s);
bool steps_full(const struct steps *s);
/* Return the number of queued servings, and of planned servings that are not
 * done. */
uint32_t steps_ready(const struct steps *s);
uint32_t steps_unfinished(const struct steps *s);

/* Publish the step at the end of the ring with `count` servings. The planner
 * has filled it in. Then call steps_plan() for each serving. */
void steps_publish(struct steps *s, struct step *st, uint32_t count);
void steps_plan(struct steps *s);
/* Queue a serving, because its original now has data for it. */
void steps_queue(struct steps *s, struct serving *serving);
/* Take the oldest queued serving. Returns NULL if there is none. */
struct serving *steps_take(struct steps *s);
/* Note that the sample of the serving is in the batch. */
void steps_done(struct steps *s, struct serving *serving);
/* Remove the oldest step, because it was returned to the caller. */
void steps_return(struct steps *s);

#endif
