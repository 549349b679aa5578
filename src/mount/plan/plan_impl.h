/* SPDX-License-Identifier: MIT */
/* Shared by the files of the plans: struct plans, each plan, and the items held
 * for it. */
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
	uint64_t base;	   /* set once: of the item, in its file */
	uint64_t bytes;	   /* set once */
	/* Set once: plan.looked and plan.missing_bytes when the item was
	 * issued. */
	uint64_t looked, missing_bytes;
	struct list found; /* in plans.held; lock */
	struct list link;  /* in plan.holds, as issued; lock */
	struct list gone;  /* in plans.gone; lock */
	int status;	   /* of done(); lock */
	bool fetched;	   /* it counts as fetched; lock */
	bool given_up;	   /* cache_unplan() was called; lock */
};

/* The last read of the beginning of a file. */
struct plan_turn {
	uint32_t file_1; /* the file's number + 1; 0: none */
	/* By the reader of position `pos`; otherwise by another program */
	bool ours;
	uint64_t pos, at_ns;
	/* If the file is one item: a bitmap of the parts that were read, which
	 * are 64ths of the file in whole pages. */
	uint64_t read;
	uint64_t read_to; /* the bytes that were read are before this offset */
};

#define PLAN_TURNS 4096u

/* Everything is guarded by the lock of the plans. */
struct plan {
	struct plans *plans; /* set once */
	struct list link;    /* in plans.plans */
	struct order order;
	struct schedule schedule;
	struct plan_params params;
	/*
	 * base <= cursor. Positions before base are finished; positions from
	 * cursor on have not been looked up, except for the bytes before
	 * cursor_off of the file at the cursor.
	 */
	uint64_t base, cursor, cursor_off;
	/* Positions before this one are past: they will not be read any
	 * more. */
	uint64_t retire_to;
	uint64_t front;
	uint64_t ahead; /* positions from base on that were read */
	/* Reads far ahead since the last read near the cursor */
	uint64_t stray;
	uint64_t stray_min;
	struct list holds;
	struct backlog backlog; /* used by the cache */
	/* As in struct plan_rates, but for all positions before the cursor. */
	uint64_t looked, missing_bytes;
	bool closing;
	struct plan_turn turn[PLAN_TURNS]; /* by file, modulo its size */
	/* The clock of steps. */
	/* The step that the owner has reported; 0: none yet */
	uint64_t step_told;
	uint64_t measured_ns, measured_step;
	uint64_t step_ns; /* 0: not known */
	/* The step time from which due_ns of the holds were computed */
	uint64_t due_step_ns;
	struct plan_status s; /* only the counts are kept here */
};

#define HELD_BUCKETS 4096u

struct plans {
	uint32_t magic;
	struct plans_config config; /* set once */
	/* Set once: limit of planned items in memory */
	uint64_t window_bytes;
	pthread_mutex_t lock;
	pthread_cond_t work_cond; /* for the pacer */
	pthread_cond_t done_cond; /* a plan has come to its end */
	/* Number of plans; relaxed: a read may miss the first or last */
	_Atomic unsigned active;
	struct list plans;
	struct list gone;		/* of struct hold */
	struct list held[HELD_BUCKETS]; /* of struct hold, by position */
	_Atomic unsigned readers;	/* plans with a reader; relaxed */
	unsigned nplans, nholds;
	uint64_t positions; /* of all orders */
	uint64_t freed;	    /* bytes freed since the pacer last looked */
	bool work, urgent;
	bool full;	     /* planned items may have no more memory */
	bool resting;	     /* the pacer waits for more to be freed */
	uint64_t rest_bytes; /* how much more must be freed */
	bool stopping;
	bool started;
	pthread_t pacer; /* valid if `started` */
};

/* plan.c; these need the lock. */
void plan_advance(struct plan *plan);
void plan_count_used(struct plan *plan, uint64_t pos);
void plans_kick(struct plans *ps, bool urgent);

/* plan_note.c; these need the lock. */
void hold_enter(struct hold *h);

/* plan_pace.c; these need the lock. */
bool pace_waits(const struct plan *plan, uint64_t pos);
uint64_t pace_step(const struct plan *plan);
uint64_t pace_due_ns(struct plan *plan);
void pace_tell(struct plan *plan, uint64_t step_ns, uint64_t now_ns);
void pace_hold(struct hold *h, uint64_t now_ns);
void pace_holds(struct plan *plan, uint64_t now_ns);
void pace_measure(struct plan *plan, uint64_t now_ns);

/* plan_rate.c; needs the lock. */
uint64_t rate_rest_bytes(const struct plans *ps);

/* plan_follow.c */
void *follow_main(void *plans);

#endif
