/* SPDX-License-Identifier: MIT */
/* Struct plans, struct plan, and the items held for plans, for the files of
 * this room. */
#ifndef PLAN_IMPL_H
#define PLAN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/list.h"
#include "common/base/magic.h"
#include "mount/plan/plan_order_impl.h"
#include "mount/plan/plan.h"

/* An item that is fetched ahead for a position. */
struct hold {
	struct cache_plan p;
	struct plan *plan; /* set once */
	uint64_t pos;	   /* set once */
	uint64_t base;	   /* set once: offset of the item in its file */
	uint64_t bytes;	   /* set once */
	/* Set once: plan.looked and plan.missing_bytes at the time of
	 * issue(). */
	uint64_t looked, missing_bytes;
	struct list found; /* in plans.held; guarded by the lock */
	struct list link;  /* in plan.holds, by time; guarded by the lock */
	struct list gone;  /* in plans.gone; guarded by the lock */
	int status;    /* status that done() received; guarded by the lock */
	bool fetched;  /* it was counted as fetched; guarded by the lock */
	bool given_up; /* cache_unplan() was called; guarded by the lock */
};

/* The last read of the beginning of a file. */
struct plan_turn {
	uint32_t file_1; /* number of the file + 1; 0: none */
	/* The reader of position `pos` has sent this read; false: another
	 * program */
	bool ours;
	uint64_t pos, at_ns;
	/* If the file is one item: a bitmap of the 64ths of the file, in whole
	 * pages, that were read. */
	uint64_t read;
	uint64_t read_to; /* the bytes before this offset were read */
};

#define PLAN_TURNS 4096u

/* The lock of the plans guards all members. */
struct plan {
	struct plans *plans; /* set once */
	struct list link;    /* in plans.plans */
	struct order order;
	struct schedule schedule;
	struct plan_params params;
	/* base <= cursor. Positions before base are finished. Positions from
	 * cursor on have not been looked up in the tiers, except for the first
	 * cursor_off bytes of the file at the cursor. */
	uint64_t base, cursor, cursor_off;
	/* Positions before this one will not be read any more. */
	uint64_t retire_to;
	uint64_t front;
	uint64_t ahead; /* number of positions from base on that were read */
	/* Number of reads far ahead since the last read near the cursor */
	uint64_t stray;
	uint64_t stray_min;
	struct list holds;
	struct backlog backlog; /* the cache updates it */
	/* Like the members of struct plan_rates with these names, but these
	 * count all positions before the cursor. */
	uint64_t looked, missing_bytes;
	bool closing;
	/* Indexed by the number of the file, modulo PLAN_TURNS */
	struct plan_turn turn[PLAN_TURNS];
	/* The last step that the owner has reported; 0: none yet */
	uint64_t step_told;
	uint64_t measured_ns, measured_step;
	uint64_t step_ns; /* duration of a step; 0: not known */
	/* The duration of a step from which due_ns of the holds were
	 * computed */
	uint64_t due_step_ns;
	/* Of these members, only the sums of fetched and read items are used */
	struct plan_status s;
};

#define HELD_BUCKETS 4096u

struct plans {
	uint32_t magic;
	struct plans_config config; /* set once */
	/* Set once: maximum size of planned items in memory */
	uint64_t window_bytes;
	pthread_mutex_t lock;
	pthread_cond_t work_cond; /* the pacer waits here */
	pthread_cond_t done_cond; /* a plan is finished */
	/* Number of plans. Relaxed: a read may miss the first or last plan */
	_Atomic unsigned active;
	struct list plans;
	struct list gone; /* list of struct hold that have ended */
	/* Hash table of struct hold, by plan and position */
	struct list held[HELD_BUCKETS];
	/* Number of plans with a reader; relaxed */
	_Atomic unsigned readers;
	unsigned nplans, nholds;
	unsigned admitting; /* number of plans with admit_planned */
	uint64_t positions; /* number of unfinished positions of all plans */
	uint64_t freed;	    /* bytes freed since the pacer last looked */
	bool work, urgent;
	/* Planned items have all memory that they may have */
	bool full;
	bool resting;	     /* the pacer waits until rest_bytes are free */
	uint64_t rest_bytes; /* number of bytes that must be freed */
	bool stopping;
	bool started;
	pthread_t pacer; /* valid if `started` */
};

/* plan.c; these functions assert the lock. */
void plan_advance(struct plan *plan);
void plan_count_used(struct plan *plan, uint64_t pos);
void plans_kick(struct plans *ps, bool urgent);

/* plan_note.c; asserts the lock. */
void hold_enter(struct hold *h);

/* plan_pace.c; these functions assert the lock. */
bool pace_waits(const struct plan *plan, uint64_t pos);
uint64_t pace_step(const struct plan *plan);
uint64_t pace_due_ns(struct plan *plan);
void pace_tell(struct plan *plan, uint64_t step_ns, uint64_t now_ns);
void pace_hold(struct hold *h, uint64_t now_ns);
void pace_holds(struct plan *plan, uint64_t now_ns);
void pace_measure(struct plan *plan, uint64_t now_ns);

/* plan_rate.c; asserts the lock. */
uint64_t rate_rest_bytes(const struct plans *ps);

/* plan_follow.c: main function of the pacer. */
void *follow_main(void *plans);

#endif
