/* SPDX-License-Identifier: MIT */
/*
 * The structs and functions of mount help's files. The states, and the calls
 * that change them:
 *
 *	mount help
 *	  OFF -> STARTING       help_start()
 *	  STARTING -> ON        go_on(): the mount was found
 *	  ON -> AWAY            hang_up(): the daemon has ended
 *	  AWAY -> ON            meet_next(): another daemon was found
 *	  all -> OFF            the thread, when mount help is over
 *	the thread
 *	  NONE -> WORKS         help_start()
 *	  WORKS -> NONE         help_start(): the thread was not created
 *	  WORKS -> SLEEPS       sleep_until_due()
 *	  SLEEPS -> STIRRED     help_knows(), help_moved(): it has work
 *	  STIRRED -> SLEEPS     help_take_stirred(): the caller will wake it
 *	  SLEEPS -> WORKS       sleep_until_due(): it has woken up
 *	  STIRRED -> WORKS      sleep_until_due(): it woke up by itself
 *	  WORKS -> ENDED        the thread
 *	the plan in the mount
 *	  NONE -> BEGUN         help_plan_begin()
 *	  NONE -> REFUSED       help_plan_begin()
 *	  BEGUN -> RATED        help_take_rates(): the mount sent its rates
 *	  BEGUN -> NONE         sleep_until_due(): everything was read
 *	  BEGUN -> AGAIN        hang_up(): the daemon has ended
 *	  RATED -> NONE, AGAIN  as from BEGUN
 *	  AGAIN -> BEGUN        help_plan_begin(); REFUSED as from NONE
 *	  REFUSED -> NONE       meet_next(): the next daemon may accept it
 */
#ifndef MOUNT_HELP_HELP_IMPL_H
#define MOUNT_HELP_HELP_IMPL_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/magic.h"
#include "loader/mount_help/help_answer_impl.h"
#include "loader/mount_help/mount_help.h"
#include "common/control/talk.h"

#define HELP_LATE_MS 250
/* The interval in which an idle loader checks whether the daemon has ended. */
#define HELP_LOOK_NS (300 * NS_PER_MS)

/* The maximum length of an answer. */
#define HELP_LINE_MAX_BYTES ((size_t)2 << 20)

/* -- help_find.c -- */

/*
 * Find the control socket of the refrain mount that contains a directory, the
 * mount's owner, and the path from the mount's root to the directory: "" or
 * "a/b/". Returns 0, -ENODATA if the directory is not on a refrain mount, or
 * another -errno.
 */
int help_find(
	int dir_fd, char socket[PATH_MAX], uid_t *owner, char below[PATH_MAX]);

/*
 * Open a cache directory that the daemon has named, with O_PATH. Returns the
 * descriptor, -EPERM if the directory belongs neither to the mount's owner nor
 * to root or if others may write to it, or another -errno.
 */
int help_open_tier(const char *dir, uid_t owner);

/* -- help.c -- */

enum help_state { HELP_OFF, HELP_STARTING, HELP_ON, HELP_AWAY };

enum help_thread_state {
	THREAD_NONE,
	THREAD_WORKS,
	THREAD_SLEEPS,
	THREAD_STIRRED, /* the thread has work and must be woken */
	THREAD_ENDED,
};

enum help_plan_state {
	PLAN_NONE,
	PLAN_REFUSED, /* the present daemon has refused the plan */
	PLAN_AGAIN,   /* the previous daemon had the plan */
	PLAN_BEGUN,
	PLAN_RATED,
};

/* The next task of the thread; see help_work.c. */
enum help_work {
	WORK_NONE, /* no task is due: check whether the daemon has ended */
	WORK_KEYS,
	WORK_BEGIN,
	WORK_PLAN,
	WORK_REPORT,
	WORK_TELL,
	WORK_END
};

/* Items that were read directly from tiers, and their bytes. */
struct help_direct {
	uint64_t items, bytes;
};

struct mount_help {
	uint32_t magic;
	/* Set once, before the thread exists. */
	struct help_config c;
	uint32_t parts; /* number of parts of an example; see dataset_parts() */
	/* The number of parts of all examples, including missing parts */
	uint64_t files;
	/* number of fresh examples of this rank in a pass */
	uint64_t pass_fresh;
	uint64_t keys_count;
	uint64_t charged;   /* bytes charged to the loader's memory budget */
	struct uring *ours; /* the ring of the loader */
	unsigned depth;

	pthread_t thread;

	/* The members up to `owner` are guarded by the lock. */
	enum help_state state;
	struct uring *ring; /* ring for reads from tiers; NULL before ON */
	enum help_thread_state thread_state;
	/* An answer is late. While this is set, reads do not wait for keys,
	 * whatever the state. */
	bool late;
	/* The thread's socket, which closing shuts down; -1: none */
	int socket;
	/* the key of a file is at its number modulo keys_count; NULL: none */
	struct help_key *keys;
	uint64_t known; /* number of keys in `keys` */
	/* Keys were requested for all fresh numbers below this */
	uint64_t answered;
	/* Reads of fresh numbers below this may have begun */
	uint64_t read_end;
	enum help_plan_state plan_state;
	/* No read begins while this is set. The reader sets it after the first
	 * miss; the thread clears it when the mount has the beginning of the
	 * plan, or when no plan is needed any more. */
	bool gated;
	bool no_plan; /* set once */
	/* Number of hits since the last read through the mount. It begins with
	 * the number of files in an epoch, as if all of them had been hits. */
	uint64_t in_row;
	bool admit_planned; /* set once: the plan has admit_planned */
	/* Progress does not wake the thread before this time */
	uint64_t due_ns;
	struct help_direct direct,
		/* `direct` counts all hits since the start; `told` counts those
		 * that were reported */
		told;
	uint64_t tell_due_ns; /* time of the next report of direct hits */
	/* In its last answer the mount said that it fetches at full speed */
	bool fetching;
	/* sums of rates of this plan and all earlier ones */
	struct fetch_rates rates;
	uint64_t returns; /* how often another daemon was found */

	/* Set once by the thread, before ON. */
	uid_t owner; /* owner of the mount */
	int tier_fds[ANSWER_TIERS_MAX];
	unsigned tiers;

	/* The members below belong to the thread. While it sleeps, other
	 * threads may read them with the lock held. */
	struct talk talk;
	/* For each dataset its path from the mount's root: "" or "a/b/" */
	char *below[DATASETS_MAX];
	struct schedule schedule; /* a copy of the planner's schedule */
	char *request;
	uint64_t *asked;	    /* files whose keys were requested */
	struct answer_key *answers; /* answers for these files */
	/* The last task. Requests for keys and names for the plan alternate */
	enum help_work last;
	uint64_t back_ns; /* time at which the present daemon was reached */
	struct help_plan {
		uint64_t first; /* the fresh number at position 0 of the plan */
		uint64_t added; /* fresh numbers below this are in the plan */
		uint64_t positions; /* number of positions in the plan */
		uint64_t named; /* number of files from `first` to `added` */
		/* Number of files from `first` to `reported` */
		uint64_t passed;
		/* the mount accepts no more names before the next report */
		bool full;
		uint64_t reported; /* the fresh number in the last report */
		/* Time of a step, as last sent to the mount */
		uint64_t step_ns;
		/* Echo factor, as last sent to the mount */
		struct schedule_echo echo;
		struct fetch_rates before; /* rates of all earlier plans */
	} plan;
};

/* Assert that the caller has the lock of the turn. */
#define ASSERT_HELP(m) ASSERT_TURN((m)->c.turn)

/* Does the mount have a plan of this loader? */
static inline bool help_plan_begun(const struct mount_help *m)
{
	return m->plan_state == PLAN_BEGUN || m->plan_state == PLAN_RATED;
}

/* -- help_plan.c: called by the thread ------------------------------------- */

/* Returns the maximum distance between reads of this loader that run at the
 * same time, in examples, with a margin. */
uint64_t help_slack(const struct mount_help *m);

#define HELP_NAMES_MAX 2048u
#define HELP_REQUEST_BYTES ((size_t)512 << 10)

/* The progress of the run. Examples with fresh numbers below `fresh`, and steps
 * below `step`, were returned. Reads of the next `begun` examples may have
 * begun. */
struct help_report {
	uint64_t fresh, step, begun;
	uint64_t step_ns; /* time of the trainer for a step; 0: unknown */
	struct help_direct untold;
};
/* Offer the mount a plan that begins at now->fresh. Returns 0, even if the
 * mount refuses the plan, or -errno if the connection has failed. */
int help_plan_begin(struct mount_help *m, const struct help_report *now);
/* Add names to the plan, up to fresh number `to`. Returns like
 * help_plan_begin(). */
int help_plan_add(struct mount_help *m, uint64_t to);
int help_plan_report(struct mount_help *m, const struct help_report *now);
/* Request the keys of at most `most` examples, from fresh number `from` on.
 * *next is set to the first fresh number that was not requested, and *count to
 * the number of answers in m->answers. */
int help_keys_ask(struct mount_help *m, uint64_t from, uint32_t most,
	uint32_t *count, uint64_t *next);

/* -- help_rates.c -- */

/* Get the rates from the answer to a report. Returns 1, 0 if the mount has
 * refused the report, or -errno. */
int help_take_rates(struct mount_help *m, const char *line, size_t bytes);

/* -- help_tell.c -- */

/* Returns the direct hits that were not reported yet, and counts them as
 * reported. The caller has the lock. */
struct help_direct help_untold(struct mount_help *m);
/* Count these hits as not reported, because the report was lost. They will be
 * part of the next report. */
void help_not_told(struct mount_help *m, const struct help_direct *untold);
/* Write the hits as members of a request, or nothing if there are no hits. */
#define HELP_DIRECT_TEXT 96
int help_put_direct(const struct help_direct *untold, char *text, size_t size);
/* Report direct hits to the mount. Called by the thread. Returns 0, or -errno
 * if the connection has failed. */
int help_tell(struct mount_help *m, const struct help_direct *untold);
/* Report the last hits when the loader closes. This waits only for a short
 * time. */
void help_tell_last(struct mount_help *m, const struct help_direct *untold);

/* -- help_ask.c -- */

/* Send m->request and wait for the answer. If the answer is late, reads that
 * wait for it continue without it. */
int help_ask(struct mount_help *m, size_t bytes, const char **line,
	size_t *line_bytes);

/* -- help_work.c -- */

/* The progress of the run when help_wait_for_work() returned. */
struct help_now {
	uint64_t answered, plan_end;
	struct help_report report;
};

/* Returns the progress of the run. The caller has the lock. */
struct help_run help_look(const struct mount_help *m);
/* Sleep until a task is due, for at most HELP_LOOK_NS. Returns that task. Takes
 * the lock. */
enum help_work help_wait_for_work(struct mount_help *m, struct help_now *now);

#endif
