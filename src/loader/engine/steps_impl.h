/* SPDX-License-Identifier: MIT */
/*
 * The ring of steps: the unfinished batches, oldest first, and the servings of
 * each. A step belongs to the planner until it is published, then to the
 * workers until its last serving is done, then to the caller. Every function
 * needs the turn's lock, except steps_new() and steps_free().
 */
#ifndef ENGINE_STEPS_IMPL_H
#define ENGINE_STEPS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "loader/core/turn.h"
#include "common/schedule/schedule.h"

struct original;
struct slab;
struct step;
struct steps;

enum serving_state {
	SERVING_WAITS,
	SERVING_QUEUED,
	SERVING_WORKS,
	SERVING_DONE
};

struct serving {
	struct list node; /* in the list of its original, or in step->ready */
	struct step *step;
	struct original *original;
	uint32_t place, echo;
	/* Steps since its previous serving; UINT64_MAX: unknown */
	uint64_t lag;
	uint64_t since_ns;
	enum serving_state state;
};

/* An unfinished batch. */
struct step {
	uint64_t number;
	uint32_t count, left; /* servings, and those that are not done */
	struct list ready;    /* servings that a worker can take */
	struct slab *slab;
	/* Belongs to the planner until the step is published */
	struct schedule_slot *slots;
	struct serving *servings;
	uint64_t lag_sum, lag_min; /* of its echoes */
	uint32_t lags, duplicates, fresh, epochs_ended;
	uint32_t substituted, zero_filled;
	uint32_t damaged; /* of the fresh ones */
	uint64_t epoch, ended_epoch;
	/* The failure at the lowest place that could not be filled. */
	int error;
	uint32_t error_place;
	int32_t error_stage;
	uint64_t error_index;
	char *why;
};

/* A ring of at most `room` steps with up to `batch` servings. Returns 0 or
 * -ENOMEM. Free *out after a failure, too. */
int steps_new(struct steps **out, const struct turn *turn, uint32_t room,
	uint32_t batch);
void steps_free(struct steps *s); /* NULL is allowed */
/* The memory of a ring of that size. */
uint64_t steps_bytes(uint32_t room, uint32_t batch);
/* Set the number of the first step. Call this before any step is published. */
void steps_begin(struct steps *s, uint64_t first);

/* The range of step numbers in the ring; the first is the next batch. */
uint64_t steps_first(const struct steps *s);
uint64_t steps_end(const struct steps *s);
struct step *steps_at(const struct steps *s, uint64_t number);
struct step *steps_oldest(const struct steps *s); /* or NULL */
/* The oldest step if all its servings are done, or NULL. */
struct step *steps_finished(const struct steps *s);
bool steps_full(const struct steps *s);
/* The number of queued servings, and of planned servings that are not done. */
uint32_t steps_ready(const struct steps *s);
uint32_t steps_unfinished(const struct steps *s);

/* Publish the step at the end of the ring, which the planner has filled in,
 * with `count` servings. Then call steps_plan() for each of them. */
void steps_publish(struct steps *s, struct step *st, uint32_t count);
void steps_plan(struct steps *s);
/* Queue a serving, whose original now has data to make it from. */
void steps_queue(struct steps *s, struct serving *serving);
/* Take the oldest queued serving, or NULL. */
struct serving *steps_take(struct steps *s);
/* The serving's place in the batch has been filled. */
void steps_done(struct steps *s, struct serving *serving);
/* The oldest step was returned to the caller: remove it. */
void steps_return(struct steps *s);

#endif
