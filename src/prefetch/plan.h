/* SPDX-License-Identifier: MIT */
/*
 * Plans: a trainer says which files it is going to read, in which order and
 * at which pace; what is in no tier is fetched in that order, as far ahead as
 * the memory for planned items allows, and held until it was read.
 *
 * A plan is a row of positions, each a file; position p is the fresh example
 * number p + `fresh` of an echo schedule, which says by which step it is
 * needed. Several plans are merged by that time. One thread follows them all;
 * it starts with the first plan. Any thread may call; nothing waits for an
 * origin.
 */
#ifndef PREFETCH_PLAN_H
#define PREFETCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/cache.h"
#include "plan/plan.h"

struct plans;
struct plan;

#define PLANS_MAX 48u /* fewer than connections, of which each has one */
/* Of all plans together that are not done with: 15 bytes each as a rule. */
#define PLAN_POSITIONS_MAX ((uint64_t)64 << 20)
/* Items that are fetched ahead and not read yet, of all plans. */
#define PLAN_ITEMS_MAX 16384u

struct plans_config {
	struct cache *cache; /* outlives the plans */
	/*
	 * Sets digest, version and cookie of a file; false if it is gone.
	 * Called with the lock of the plans held.
	 */
	bool (*file)(void *arg, uint64_t cookie, struct cache_item *file);
	void *arg;
	struct counters *counters; /* outlive the plans */
};

int plans_new(struct plans **out, const struct plans_config *config);

/* All plans have been closed. NULL is allowed. */
void plans_free(struct plans *ps);

/*
 * Somebody read [off, off + len) of a file; `file` has cookie, version and
 * the item of `off` set. Costs one relaxed load without plans.
 */
void plans_note(struct plans *ps, const struct cache_item *file, uint64_t off,
	size_t len);

/* A version of a file ceased. */
void plans_forget(struct plans *ps, uint64_t cookie);

/* 0 stands for the default. */
struct plan_params {
	uint32_t batch;			     /* 1 */
	struct schedule_echo echo, echo_max; /* 1; as echo */
	uint64_t window;		     /* of the schedule; its own */
	uint64_t fresh;			     /* number of the first example */
	uint64_t step_ns;		     /* measured */
	/*
	 * A position is given up when more than this many after it were read
	 * before it: as far as threads that read in one order may be apart.
	 */
	uint64_t slack; /* 16 batches, at least 256 */
};

/*
 * -EINVAL for a schedule that cannot be, -EUSERS for too many plans, -ENOMEM;
 * with a message.
 */
int plan_open(struct plans *ps, const struct plan_params *params,
	struct plan **out, struct error *err);

/* What only this plan wanted is given up. */
void plan_close(struct plan *plan);

/*
 * Append one position. -EEXIST: the file is in this epoch already. -EINVAL:
 * the epoch is before that of the last position. -ENOSPC: a bound was met.
 */
int plan_add(struct plan *plan, uint64_t epoch, uint64_t cookie);

/* Everything before the position, or the step, is done with. */
void plan_progress(struct plan *plan, uint64_t position);
void plan_progress_step(struct plan *plan, uint64_t step);

/* What a step takes from now on; 0: to be measured. */
void plan_step_time(struct plan *plan, uint64_t step_ns);

/* The echo factor changes; as schedule_change(). */
int plan_echo(struct plan *plan, uint64_t step, struct schedule_echo echo);

struct plan_status {
	uint64_t positions;	/* added */
	uint64_t done;		/* all before this one are done with */
	uint64_t front;		/* one more than the last that was read */
	uint64_t cursor;	/* all before this one have been looked at */
	uint64_t step;		/* that needs the one at `front` */
	uint64_t read;		/* positions whose file was read */
	uint64_t resident;	/* positions that were in a tier already */
	uint64_t fetched_items; /* for this plan, or joined by it */
	uint64_t fetched_bytes;
	uint64_t ahead_items; /* of these, those that are held */
	uint64_t ahead_bytes;
	uint64_t wasted;  /* items given up unread */
	uint64_t failed;  /* items that could not be fetched */
	uint64_t gone;	  /* positions whose file has changed */
	uint64_t step_ns; /* given or measured; 0: not known */
};
void plan_status(struct plan *plan, struct plan_status *status);

/* Wait until all positions are done with, at most so long. True: they are. */
bool plan_wait(struct plan *plan, uint64_t timeout_ns);

struct plans_status {
	uint64_t plans, positions; /* not done with */
};
void plans_status(struct plans *ps, struct plans_status *status);

#endif
