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
#include <sys/types.h>

#include "base/err.h"
#include "cache/cache.h"
#include "schedule/schedule.h"

struct plans;
struct plan;

#define PLANS_MAX 48u /* fewer than connections, of which each has one */
/* Limit for positions of all open plans together: usually 15 bytes each. */
#define PLAN_POSITIONS_MAX ((uint64_t)64 << 20)

/* The time of a step, at most, in milliseconds. */
#define PLAN_STEP_MS_MAX 1e9
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

/* The plan and position that a read belongs to. */
enum plans_turn {
	PLANS_NONE,  /* of no position */
	PLANS_NOW,   /* of a position, and its reader waits for it */
	PLANS_LATER, /* of a position that its reader has not come to yet */
	/* The same; the position has begun to read the file before. */
	PLANS_NOW_AGAIN,
	PLANS_LATER_AGAIN,
};

/*
 * Process `pid` (0: not known) is going to read [off, off + len) of a file;
 * `file` has cookie and version set. *again_bytes (NULL is allowed): so many
 * of these the position has read before, as far as that is known. Costs one
 * relaxed load without plans.
 */
enum plans_turn plans_note(struct plans *ps, const struct cache_item *file,
	uint64_t off, size_t len, pid_t pid, size_t *again_bytes);

/* Does any plan want to know who reads? */
bool plans_ask_reader(struct plans *ps);

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
	/*
	 * A reader that has read a position does not read one so many after it
	 * before it has used the first: such a read is the kernel's, of the
	 * position before. 0: slack.
	 */
	uint64_t spread;
	/*
	 * The owner is interested in plan_rates(): what has time is fetched as
	 * fast as the rest, and in bursts where there is memory for them.
	 */
	bool measure;
	/*
	 * The only process that reads by this plan, and that reports its
	 * progress; 0: anybody may. Reads of others end nothing of it, and of
	 * its own reads those that are for a later step are not demand.
	 */
	pid_t reader;
	/* The number of positions at the beginning that are being read already:
	 * nothing is fetched ahead for them. */
	uint64_t begun;
};

/*
 * -EINVAL for a schedule that cannot be, -EUSERS for too many plans, -ENOMEM;
 * with a message.
 */
int plan_open(struct plans *ps, const struct plan_params *params,
	struct plan **out, struct error *err);

/* Close a plan and give up fetches that only it needed. */
void plan_close(struct plan *plan);

/*
 * Append one position. -EEXIST: the file is in this epoch already. -EINVAL:
 * the epoch is before that of the last position. -ENOSPC: a bound was met.
 */
int plan_add(struct plan *plan, uint64_t epoch, uint64_t cookie);

/* Everything before the position, or the step, is done with. */
void plan_progress(struct plan *plan, uint64_t position);
void plan_progress_step(struct plan *plan, uint64_t step);

/* Set the time of a step from now on; 0: measure it. */
void plan_step_time(struct plan *plan, uint64_t step_ns);

/* The echo factor changes; as schedule_change(). */
int plan_echo(struct plan *plan, uint64_t step, struct schedule_echo echo);
/* The same from the example with this number in its schedule on. */
int plan_echo_from(
	struct plan *plan, uint64_t fresh, struct schedule_echo echo);

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

/* Sums that only grow. */
struct plan_rates {
	/* Bytes received and time taken while more was to come than the origin
	 * is asked for at a time; the part of these at the origin's lasting
	 * speed; how often such a period began, and whether it goes on. */
	uint64_t full_ns, full_bytes, long_ns, long_bytes, bursts;
	bool fetching;
	/* Positions that were looked up in the tiers; not those whose reader
	 * came first. Of these, the bytes to be fetched. */
	uint64_t looked, missing_bytes;
	bool full; /* planned items have all memory they may */
};
void plan_rates(struct plan *plan, struct plan_rates *out);

/* Wait until all positions are done with, at most so long. True: they are. */
bool plan_wait(struct plan *plan, uint64_t timeout_ns);

struct plans_status {
	uint64_t plans, positions; /* not done with */
};
void plans_status(struct plans *ps, struct plans_status *status);

#endif
