/* SPDX-License-Identifier: MIT */
/*
 * Plans: a trainer announces which files it is going to read, in which order
 * and at which pace. Items that are in no tier are fetched in that order, as
 * far ahead as the memory for planned items allows, and stay in memory until
 * they have been read.
 *
 * A plan is a sequence of positions, each a file. Position p is the fresh
 * example with number p + `fresh` of an echo schedule, which gives the step
 * that needs it. Several plans are merged by the time of these steps. One
 * thread follows all plans; it starts with the first one. Any thread may call,
 * and no call waits for an origin.
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

/* Fewer than the limit of connections, which have one each */
#define PLANS_MAX 48u
/* Limit for positions of all open plans together: usually 15 bytes each. */
#define PLAN_POSITIONS_MAX ((uint64_t)64 << 20)

/* The maximum time of a step, in milliseconds. */
#define PLAN_STEP_MS_MAX 1e9
/* Limit for items that are fetched ahead and not read yet, of all plans
 * together. */
#define PLAN_ITEMS_MAX 16384u

struct plans_config {
	struct cache *cache; /* outlives the plans */
	/* Set digest, version and cookie of a file. Returns false if the file
	 * is gone. Called with the lock of the plans held. */
	bool (*file)(void *arg, uint64_t cookie, struct cache_item *file);
	void *arg;
	struct counters *counters; /* outlive the plans */
};

int plans_new(struct plans **out, const struct plans_config *config);

/* Close all plans first. NULL is allowed. */
void plans_free(struct plans *ps);

/* The plan and position that a read belongs to. */
enum plans_turn {
	PLANS_NONE,  /* the read is for no position */
	PLANS_NOW,   /* for a position, and the reader waits for it */
	PLANS_LATER, /* for a position that the reader will reach later */
	/* As PLANS_NOW, but the position has begun to read the file before. */
	PLANS_NOW_AGAIN,
	PLANS_LATER_AGAIN,
};

/* More about such a read. */
struct plans_read {
	/* How many of these bytes the position has read already, as far as that
	 * is known. */
	size_t again_bytes;
	/* How many plans have come to a position of the file by this read.
	 * Their readers are unknown: the read is from one of them, and the
	 * others may follow. */
	unsigned plan_readers;
};

/*
 * Process `pid` (0: unknown) is going to read [off, off + len) of a file;
 * `item` contains `off`. *more may be NULL. Without plans, this costs one
 * relaxed load.
 */
enum plans_turn plans_note(struct plans *ps, const struct cache_item *item,
	uint64_t off, size_t len, pid_t pid, struct plans_read *more);

/* Does any plan need to know which process reads? */
bool plans_ask_reader(struct plans *ps);

/* Note that a version of a file no longer exists. */
void plans_forget(struct plans *ps, uint64_t cookie);

/* 0 stands for the default, which is in the comment. */
struct plan_params {
	uint32_t batch;			     /* 1 */
	struct schedule_echo echo, echo_max; /* 1; as echo */
	/* Of the schedule; the schedule's default */
	uint64_t window;
	uint64_t fresh;	  /* number of the first example */
	uint64_t step_ns; /* measured */
	/*
	 * A position is given up when more than this many later positions have
	 * been read. Set it to the largest distance between threads that read
	 * in one order.
	 */
	uint64_t slack; /* 16 batches, at least 256 */
	/*
	 * A reader has used a position before it reads one that is this many
	 * later. If the later one is read before that, it is by the kernel's
	 * read-ahead. 0: slack.
	 */
	uint64_t spread;
	/*
	 * The owner uses plan_rates(). Items that are not due soon are then
	 * fetched as fast as the others, in bursts if there is memory for them.
	 */
	bool measure;
	/*
	 * The only process that reads by this plan; it reports its progress.
	 * Reads by other processes do not advance the plan. Reads by this
	 * process for a later step do not count as demand. 0: any process may
	 * read.
	 */
	pid_t reader;
	/* The number of positions at the beginning that are being read already:
	 * nothing is fetched ahead for them. */
	uint64_t begun;
};

/* Open a plan. Returns 0; otherwise -EINVAL if the schedule is impossible,
 * -EUSERS if there are too many plans, or -ENOMEM, with a message. */
int plan_open(struct plans *ps, const struct plan_params *params,
	struct plan **out, struct error *err);

/* Close a plan and give up fetches that only it needed. */
void plan_close(struct plan *plan);

/*
 * Append one position. Returns 0, -EEXIST if the file is in this epoch already,
 * -EINVAL if the epoch is before that of the last position, or -ENOSPC if a
 * limit was reached.
 */
int plan_add(struct plan *plan, uint64_t epoch, uint64_t cookie);

/* Positions before this one, or before this step, are finished. */
void plan_progress(struct plan *plan, uint64_t position);
void plan_progress_step(struct plan *plan, uint64_t step);

/* Set the time of a step from now on; 0: measure it. */
void plan_step_time(struct plan *plan, uint64_t step_ns);

/* Change the echo factor, as schedule_change() does. */
int plan_echo(struct plan *plan, uint64_t step, struct schedule_echo echo);
/* Change it from the example with this number in the schedule on. */
int plan_echo_from(
	struct plan *plan, uint64_t fresh, struct schedule_echo echo);

struct plan_status {
	uint64_t positions; /* positions that were added */
	uint64_t done;	    /* all positions before this one are finished */
	uint64_t front;	    /* the position after the last one that was read */
	uint64_t cursor; /* all positions before this one have been looked up */
	uint64_t step;	 /* the step that needs the position at `front` */
	uint64_t read;	 /* positions whose file was read */
	uint64_t resident; /* positions that were in a tier already */
	/* Fetched for this plan, or for another and used by this one */
	uint64_t fetched_items;
	uint64_t fetched_bytes;
	uint64_t ahead_items; /* of these, items that are held now */
	uint64_t ahead_bytes;
	uint64_t wasted;  /* items given up unread */
	uint64_t failed;  /* items that could not be fetched */
	uint64_t gone;	  /* positions whose file has changed */
	uint64_t step_ns; /* given or measured; 0: not known */
};
void plan_status(struct plan *plan, struct plan_status *status);

/* Show all open plans, oldest first, to a person who looks for a cause. Returns
 * their number. */
struct plan_view {
	pid_t reader; /* 0: any process */
	struct plan_status status;
};
unsigned plans_view(struct plans *ps, struct plan_view out[PLANS_MAX]);

/* Sums that only grow. */
struct plan_rates {
	/*
	 * A burst is the time in which at least as many requests are left as
	 * the origin gets at a time. These are the time and the bytes received
	 * in bursts; how much of these was at the origin's lasting speed; the
	 * number of bursts; and whether there is one now.
	 */
	uint64_t full_ns, full_bytes, long_ns, long_bytes, bursts;
	bool fetching;
	/*
	 * The number of positions that were looked up in the tiers before their
	 * reader came, and how many of their bytes had to be fetched. Only
	 * positions before the first item that waits in memory for its reader
	 * are counted: bytes that later positions lack do not slow the reader
	 * down now, as memory for a whole epoch also contains items of the next
	 * one.
	 */
	uint64_t looked, missing_bytes;
	bool full; /* planned items have all memory they may */
};
void plan_rates(struct plan *plan, struct plan_rates *out);

/* Wait until all positions are finished, at most timeout_ns. Returns false on a
 * time-out. */
bool plan_wait(struct plan *plan, uint64_t timeout_ns);

struct plans_status {
	/* Plans, and positions that are not finished */
	uint64_t plans, positions;
};
void plans_status(struct plans *ps, struct plans_status *status);

#endif
