/* SPDX-License-Identifier: MIT */
/*
 * Plans: a trainer announces which files it is going to read, in which order
 * and at which pace. Items of these files that are in no tier are fetched in
 * that order, as far ahead as the memory for planned items allows. They stay in
 * memory until they have been read.
 *
 * A plan is a sequence of positions, each a file. Position p is the fresh
 * example number p + `fresh` of an echo schedule, which tells the step that
 * needs the example. Several plans are merged by the times of these steps. One
 * thread follows all plans; the first plan starts it. Any thread may call, and
 * no call waits for an origin.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "common/schedule/schedule.h"

struct plans;
struct plan;

/* Less than the limit of connections, because each plan has a connection */
#define PLANS_MAX 48u
/* Limit for the positions of all open plans together. A position usually takes
 * 15 bytes. */
#define PLAN_POSITIONS_MAX ((uint64_t)64 << 20)

/* The maximum time of a step, in milliseconds. */
#define PLAN_STEP_MS_MAX 1e9
/* Limit for items of all plans together that were fetched ahead and not read
 * yet. */
#define PLAN_ITEMS_MAX 16384u

struct plans_config {
	struct cache *cache; /* outlives the plans */
	/* Set digest, version and cookie of the file with this cookie. Returns
	 * false if the file is gone. Called with the lock of the plans held. */
	bool (*file)(void *arg, uint64_t cookie, struct cache_item *file);
	void *arg;
	struct counters *counters; /* outlive the plans */
};

int plans_new(struct plans **out, const struct plans_config *config);

/* All plans must have been closed. NULL is allowed. */
void plans_free(struct plans *ps);

/* How a read relates to the plans. */
enum plans_turn {
	PLANS_NONE,  /* the read is not part of any plan */
	PLANS_NOW,   /* it belongs to a position for which the reader waits */
	PLANS_LATER, /* it belongs to a position that the reader needs later */
	/* the same two, and the position has read a part of the file before */
	PLANS_NOW_AGAIN,
	PLANS_LATER_AGAIN,
};

/* More about a read that belongs to a position. */
struct plans_read {
	/* The number of its bytes that the position has read before, if that is
	 * known; otherwise 0. */
	size_t again_bytes;
	/* The number of plans whose next position of the file this read may be.
	 * The readers of these plans are not known: the read comes from one of
	 * them, and the others may follow. */
	unsigned plan_readers;
	/* An open plan has admit_planned, and no plan names the file. */
	bool barred;
};

/* Note that process `pid` (0: unknown) is going to read [off, off + len) of a
 * file. `item` contains `off`. `more` may be NULL. If there are no plans, this
 * costs one relaxed load. */
enum plans_turn plans_note(struct plans *ps, const struct cache_item *item,
	uint64_t off, size_t len, pid_t pid, struct plans_read *more);

/* Does any plan need to know which process reads? */
bool plans_ask_reader(struct plans *ps);

/* Note that a version of a file no longer exists. */
void plans_forget(struct plans *ps, uint64_t cookie);

/* Options of a plan. 0 stands for the default, which the comment of the member
 * names. */
struct plan_params {
	/* Examples in a batch; default: 1 */
	uint32_t batch;
	/* Echo factor and its limit; default: 1, and the value of `echo` */
	struct schedule_echo echo, echo_max;
	/* The window of the schedule; default: that of schedule.h */
	uint64_t window;
	uint64_t fresh;	  /* number of the first example in the schedule */
	uint64_t step_ns; /* duration of a step; default: it is measured */
	/* A position is given up when more than this many later positions have
	 * been read. If several threads read in one order, set this to the
	 * largest distance between them. */
	uint64_t slack; /* default: 16 batches, at least 256 */
	/* A second read of a file within a second counts for its next position
	 * only if that position is at most this many positions after the last
	 * one that was read. Otherwise the kernel has dropped pages and repeats
	 * the first read. Default: slack. */
	uint64_t spread;
	/* The owner calls plan_rates(). In this case, items that are not due
	 * soon are fetched as fast as the others, in bursts if memory is free
	 * for them. */
	bool measure;
	/*
	 * The only process that reads by this plan. It reports its progress.
	 * Reads by other processes do not advance the plan. A read by this
	 * process for a later step does not count as demand. 0: any process may
	 * read.
	 */
	pid_t reader;
	/* While this plan is open, the tiers admit only the files that open
	 * plans name, and those that are warmed. */
	bool admit_planned;
	/* Number of positions, from the first, that the trainer is already
	 * reading, so that nothing is fetched ahead for them. */
	uint64_t begun;
};

/* Open a plan. Returns 0, or with a message: -EINVAL if the schedule is
 * impossible, -EUSERS if there are too many plans, or -ENOMEM. */
int plan_open(struct plans *ps, const struct plan_params *params,
	struct plan **out, struct error *err);

/* Close a plan, and give up fetches that no other plan needs. */
void plan_close(struct plan *plan);

/* Append one position. Returns 0; -EEXIST if the file has a position in this
 * epoch already; -EINVAL if the epoch is before that of the last position; or
 * -ENOSPC if a limit was reached. */
int plan_add(struct plan *plan, uint64_t epoch, uint64_t cookie);

/* Note that all positions before this one, or all positions for steps before
 * this one, are finished. */
void plan_progress(struct plan *plan, uint64_t position);
void plan_progress_step(struct plan *plan, uint64_t step);

/* Set the duration of a step from now on; 0: measure it. */
void plan_step_time(struct plan *plan, uint64_t step_ns);

/* Change the echo factor from this step on; see schedule_change(). */
int plan_echo(struct plan *plan, uint64_t step, struct schedule_echo echo);
/* Change the echo factor from the example with this number in the schedule
 * on. */
int plan_echo_from(
	struct plan *plan, uint64_t fresh, struct schedule_echo echo);

struct plan_status {
	uint64_t positions; /* number of positions that were added */
	uint64_t done;	    /* all positions before this one are finished */
	uint64_t front;	    /* the position after the last one that was read */
	/* All positions before this one were looked up in the tiers */
	uint64_t cursor;
	uint64_t step;	   /* the step that needs the position at `front` */
	uint64_t read;	   /* number of positions whose file was read */
	uint64_t resident; /* number of positions that a tier had already */
	/* Items that were fetched for this plan, and items that were fetched
	 * for another plan and used by this one */
	uint64_t fetched_items;
	uint64_t fetched_bytes;
	uint64_t ahead_items; /* of these, items that are held in memory now */
	uint64_t ahead_bytes;
	uint64_t wasted; /* items that were given up before they were read */
	uint64_t failed; /* items that could not be fetched */
	uint64_t gone;	 /* positions whose file has changed or is gone */
	/* Given or measured duration of a step; 0: not known */
	uint64_t step_ns;
};
void plan_status(struct plan *plan, struct plan_status *status);

/* Get all open plans, oldest first, for a person who looks for the cause of a
 * problem. Returns their number. */
struct plan_view {
	pid_t reader; /* 0: any process */
	struct plan_status status;
};
unsigned plans_view(struct plans *ps, struct plan_view out[PLANS_MAX]);

/* Rates of a plan. Numbers are sums since its start. */
struct plan_rates {
	/*
	 * A burst is the time during which at least as many requests wait as
	 * the origin gets at a time. `full` covers all bursts: their time, and
	 * the bytes received in them. `long` covers the part of these at the
	 * lasting speed of the origin. `bursts` is their number, and `fetching`
	 * says whether a burst is going on.
	 */
	uint64_t full_ns, full_bytes, long_ns, long_bytes, bursts;
	bool fetching;
	/*
	 * The number of positions that were looked up in the tiers before their
	 * reader came, and the bytes of these that had to be fetched. Positions
	 * after the first item that waits in memory for its reader do not
	 * count: bytes that they lack do not slow the reader down now. For
	 * example, memory for a whole epoch also contains items of the next
	 * one.
	 */
	uint64_t looked, missing_bytes;
	bool full; /* planned items have all memory that they may have */
};
void plan_rates(struct plan *plan, struct plan_rates *out);

/* Wait until all positions are finished, or for timeout_ns. Returns false on a
 * time-out. */
bool plan_wait(struct plan *plan, uint64_t timeout_ns);

struct plans_status {
	/* Number of plans, of those with admit_planned, and of positions that
	 * are not finished */
	uint64_t plans, admit_planned, positions;
};
void plans_status(struct plans *ps, struct plans_status *status);

#endif
