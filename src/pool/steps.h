/* SPDX-License-Identifier: MIT */
/*
 * The ring of steps: the batches in the making, oldest first, and the servings
 * of each. A step is the planner's until it is published, then the workers'
 * until its last serving is done, then the caller's. Every function needs the
 * turn's lock, but for those of its life.
 */
#ifndef POOL_STEPS_H
#define POOL_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/turn.h"
#include "schedule/schedule.h"

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
	struct list node; /* of its original, or step->ready */
	struct step *step;
	struct original *original;
	uint32_t place, echo;
	uint64_t lag; /* steps since the one before; UINT64_MAX: none known */
	uint64_t since_ns;
	enum serving_state state;
};

/* A batch in the making. */
struct step {
	uint64_t number;
	uint32_t count, left; /* servings; those that are not done */
	struct list ready;    /* servings that a worker can take */
	struct slab *slab;
	struct schedule_slot *slots; /* planner's until it is published */
	struct serving *servings;
	uint64_t lag_sum, lag_min; /* of its echoes */
	uint32_t lags, duplicates, fresh, epochs_ended;
	uint32_t substituted, zero_filled;
	uint32_t damaged; /* of the fresh ones */
	uint64_t epoch, ended_epoch;
	/* The failure of the lowest place that nothing can take. */
	int error;
	uint32_t error_place;
	int32_t error_stage;
	uint64_t error_index;
	char *why;
};

/* `room` steps of at most `batch` servings. -ENOMEM: to be freed, too. */
int steps_new(struct steps **out, const struct turn *turn, uint32_t room,
	uint32_t batch);
void steps_free(struct steps *s); /* NULL is allowed */
/* Its memory, with so many of them. */
uint64_t steps_bytes(uint32_t room, uint32_t batch);
/* Before the first: its number. */
void steps_begin(struct steps *s, uint64_t first);

/* Numbers that are in the ring; the first is that of the next batch. */
uint64_t steps_first(const struct steps *s);
uint64_t steps_end(const struct steps *s);
struct step *steps_at(const struct steps *s, uint64_t number);
struct step *steps_oldest(const struct steps *s); /* or NULL */
/* The oldest, if all its servings are done; or NULL. */
struct step *steps_finished(const struct steps *s);
bool steps_full(const struct steps *s);
/* Servings that are queued; that are planned and not done. */
uint32_t steps_ready(const struct steps *s);
uint32_t steps_unfinished(const struct steps *s);

/* The step at the end, which the planner has filled in, is published with so
 * many servings; they are planned one by one. */
void steps_publish(struct steps *s, struct step *st, uint32_t count);
void steps_plan(struct steps *s);
/* Something is there that the serving can be made from. */
void steps_queue(struct steps *s, struct serving *serving);
void steps_unqueue(struct steps *s, struct serving *serving);
/* Take the oldest that is queued, or NULL. */
struct serving *steps_take(struct steps *s);
/* Its place in the batch is filled. */
void steps_done(struct steps *s, struct serving *serving);
/* The oldest step is with the caller. */
void steps_return(struct steps *s);

#endif
