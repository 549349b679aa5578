/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of a mount's help: its states, and the functions of each
 * file. The calls that change the states:
 *
 *	the help
 *	  OFF -> STARTING       help_start()
 *	  STARTING -> ON        go_on(): the mount was found
 *	  ON -> AWAY            hang_up(): the daemon has ended
 *	  AWAY -> ON            meet_next(): there is another
 *	  all -> OFF            the thread, when the help is over
 *	the thread
 *	  NONE -> WORKS         help_start()
 *	  WORKS -> NONE         help_start(): there is no thread after all
 *	  WORKS -> SLEEPS       sleep_until_due()
 *	  SLEEPS -> STIRRED     help_knows(), help_moved(): it has work
 *	  STIRRED -> SLEEPS     help_take_stirred(): it is being woken
 *	  SLEEPS -> WORKS       sleep_until_due(): it is awake
 *	  STIRRED -> WORKS      ... before it was woken
 *	  WORKS -> ENDED        the thread
 *	the plan in the mount
 *	  NONE -> BEGUN         help_plan_begin()
 *	  NONE -> REFUSED       help_plan_begin()
 *	  BEGUN -> RATED        help_take_rates(): the mount says how fast it is
 *	  BEGUN -> NONE         sleep_until_due(): all of it is over
 *	  BEGUN -> AGAIN        hang_up(): the daemon has ended
 *	  RATED -> NONE, AGAIN  as from BEGUN
 *	  AGAIN -> BEGUN        help_plan_begin(), or REFUSED as from NONE
 *	  REFUSED -> NONE       meet_next(): the next daemon may take one
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
/* How soon a silent loader notices that the daemon has ended. */
#define HELP_LOOK_NS (300 * NS_PER_MS)

/* Longer lines of answers are refused. */
#define HELP_LINE_MAX_BYTES ((size_t)2 << 20)

/* -- help_find.c -- */

/*
 * Find the control socket of the refrain mount that holds a directory, the
 * mount's owner, and the path from the mount's root to the directory: "" or
 * "a/b/". -ENODATA, -errno.
 */
int help_find(
	int dir_fd, char socket[PATH_MAX], uid_t *owner, char below[PATH_MAX]);

/*
 * Open, with O_PATH, a cache directory that the daemon has named. Returns the
 * descriptor; -EPERM if it belongs neither to the mount's owner nor to root, or
 * if others may write to it; or another -errno.
 */
int help_open_tier(const char *dir, uid_t owner);

/* -- help.c -- */

enum help_state { HELP_OFF, HELP_STARTING, HELP_ON, HELP_AWAY };

enum help_thread_state {
	THREAD_NONE,
	THREAD_WORKS,
	THREAD_SLEEPS,
	THREAD_STIRRED, /* will look again */
	THREAD_ENDED,
};

enum help_plan_state {
	PLAN_NONE,
	PLAN_REFUSED, /* refused by this daemon */
	PLAN_AGAIN,   /* the previous daemon had a plan */
	PLAN_BEGUN,
	PLAN_RATED,
};

/* The next task of the thread; see help_work.c. */
enum help_work {
	WORK_NONE, /* nothing for a while: check whether the daemon lives */
	WORK_KEYS,
	WORK_BEGIN,
	WORK_PLAN,
	WORK_REPORT,
	WORK_TELL,
	WORK_END
};

/* Items that were read from tiers, and their bytes. */
struct help_direct {
	uint64_t items, bytes;
};

struct mount_help {
	uint32_t magic;
	/* Set once, before the thread is there. */
	struct help_config c;
	uint32_t parts;	      /* of an example */
	uint64_t files;	      /* the parts of all examples, also missing ones */
	uint64_t epoch_fresh; /* fresh examples of an epoch, of this rank */
	uint64_t keys_count;
	uint64_t charged;   /* bytes charged to the loader's memory */
	struct uring *ours; /* the loader's own ring */
	unsigned depth;

	pthread_t thread;

	/* All of these are guarded by the lock. */
	enum help_state state;
	struct uring *ring; /* for entries; NULL until ON */
	enum help_thread_state thread_state;
	/* An answer is late, so no read waits for keys now, in any state. */
	bool late;
	int socket;	       /* closing shuts it down; -1: none */
	struct help_key *keys; /* by file modulo keys_count; NULL: none */
	uint64_t known;	       /* number of keys in `keys` */
	uint64_t answered; /* keys have been requested for fresh numbers below
			      this */
	uint64_t read_end; /* fresh numbers below this may be being read */
	enum help_plan_state plan_state;
	/* Nothing is read until the mount has the beginning of a plan. The
	 * reader closes this gate; the thread opens it when the mount has that
	 * much of the plan, or when no plan is wanted any more. */
	bool gated;
	/* Hits since the last read through the mount. It starts as if an epoch
	 * of hits had passed. */
	uint64_t in_row;
	uint64_t due_ns; /* no wake-up for progress before this time */
	struct help_direct direct,
		/* Direct: since the start; told: of these, reported */
		told;
	uint64_t tell_due_ns; /* do not report before this time */
	/* The mount said last that it fetches at full speed */
	bool fetching;
	struct fetch_rates rates; /* of this plan and those before */
	uint64_t returns;	  /* daemons after the first */

	/* Set once by the thread, before ON. */
	uid_t owner; /* of the mount */
	int tier_fds[ANSWER_TIERS_MAX];
	unsigned tiers;

	/* These belong to the thread. While it sleeps, others may read them
	 * under the lock. */
	struct talk talk;
	char below[PATH_MAX];
	struct schedule schedule; /* a copy of the planner's */
	char *request;
	uint64_t *asked;	    /* files of a request */
	struct answer_key *answers; /* the answers to these */
	/* The last task: keys and names for the plan take turns */
	enum help_work last;
	uint64_t back_ns; /* when the current daemon was reached */
	struct help_plan {
		uint64_t first; /* the fresh number at position 0 */
		uint64_t added; /* fresh numbers below this are in the plan */
		uint64_t positions; /* how many the plan has */
		uint64_t named;	    /* files from `first` to `added` */
		uint64_t passed;    /* files from `first` to `reported` */
		bool full;	    /* the mount takes no more until a report */
		uint64_t reported;  /* the fresh number of the last report */
		uint64_t step_ns;   /* that the mount was told */
		struct schedule_echo echo; /* that the mount was told */
		struct fetch_rates before; /* of plans before */
	} plan;
};

/* The caller has the lock of the turn. */
#define ASSERT_HELP(m) ASSERT_TURN((m)->c.turn)

/* Has the mount a plan of ours? */
static inline bool help_plan_begun(const struct mount_help *m)
{
	return m->plan_state == PLAN_BEGUN || m->plan_state == PLAN_RATED;
}

/* -- help_plan.c: the thread's -- */

/* The maximum distance between reads of this loader, with a margin. */
uint64_t help_slack(const struct mount_help *m);

#define HELP_NAMES_MAX 2048u
#define HELP_REQUEST_BYTES ((size_t)512 << 10)

/* The state of the run: examples with fresh numbers below `fresh`, and steps
 * below `step`, have been returned, and the next `begun` examples may be being
 * read. */
struct help_report {
	uint64_t fresh, step, begun;
	uint64_t step_ns; /* of the trainer; 0: not known */
	struct help_direct untold;
};
/* Offer the mount a plan that begins at now->fresh. Returns -errno if the
 * conversation is over; a refusal is not a failure. */
int help_plan_begin(struct mount_help *m, const struct help_report *now);
/* Add names to the plan, up to fresh number `to`. Returns as
 * help_plan_begin(). */
int help_plan_add(struct mount_help *m, uint64_t to);
int help_plan_report(struct mount_help *m, const struct help_report *now);
/* Ask for keys of at most `most` examples from fresh number `from` on. *next
 * is the first fresh number that was not asked for. m->answers has *count
 * answers. */
int help_keys_ask(struct mount_help *m, uint64_t from, uint32_t most,
	uint32_t *count, uint64_t *next);

/* -- help_rates.c -- */

/* Take rates from the answer to a report. Returns 1, 0 if it was refused, or
 * -errno. */
int help_take_rates(struct mount_help *m, const char *line, size_t bytes);

/* -- help_tell.c -- */

/* Get the direct hits that are not reported yet, and count them as reported.
 * Needs the lock. */
struct help_direct help_untold(struct mount_help *m);
/* A report was lost: its hits are added to the next report. */
void help_not_told(struct mount_help *m, const struct help_direct *untold);
/* Write the hits as members of a request; writes nothing if there are none. */
#define HELP_DIRECT_TEXT 96
int help_put_direct(const struct help_direct *untold, char *text, size_t size);
/* Report direct hits to the mount. Called by the thread. Returns -errno if the
 * conversation is over. */
int help_tell(struct mount_help *m, const struct help_direct *untold);
/* Report the last hits when the loader closes, with a short time limit. */
void help_tell_last(struct mount_help *m, const struct help_direct *untold);

/* -- help_ask.c -- */

/* Send m->request and wait. If the answer is late, waiting reads go on without
 * it. */
int help_ask(struct mount_help *m, size_t bytes, const char **line,
	size_t *line_bytes);

/* -- help_work.c -- */

/* The state of the run when help_wait_for_work() returned. */
struct help_now {
	uint64_t answered, plan_end;
	struct help_report report;
};

/* The state of the run. Asserts the lock. */
struct help_run help_look(const struct mount_help *m);
/* Sleep until something is due, or HELP_LOOK_NS. Takes the lock. */
enum help_work help_wait_for_work(struct mount_help *m, struct help_now *now);

#endif
