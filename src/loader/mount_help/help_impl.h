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
 * Open a cache directory that the daemon named, with O_PATH. Returns -EPERM if
 * it belongs to somebody other than the mount's owner and root, or if others
 * may write to it, or another -errno.
 */
int help_open_tier(const char *dir, uid_t owner);

/* -- help.c -- */

enum help_state { HELP_OFF, HELP_STARTING, HELP_ON, HELP_AWAY };

enum help_thread_state {
	THREAD_NONE,
	THREAD_WORKS,
	THREAD_SLEEPS,
	THREAD_STIRRED, /* is to look again */
	THREAD_ENDED,
};

enum help_plan_state {
	PLAN_NONE,
	PLAN_REFUSED, /* by this daemon */
	PLAN_AGAIN,   /* the daemon before had one */
	PLAN_BEGUN,
	PLAN_RATED,
};

/* The next task of the thread; see help_work.c. */
enum help_work {
	WORK_NONE, /* for a while: see whether the daemon is there */
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
	uint64_t examples;
	uint64_t epoch_fresh; /* fresh examples of an epoch, of this rank */
	uint64_t keys_count;
	uint64_t charged;   /* of the loader's memory */
	struct uring *ours; /* the loader's own */
	unsigned depth;

	pthread_t thread;

	/* All of these: the lock. */
	enum help_state state;
	struct uring *ring; /* for entries; NULL until ON */
	enum help_thread_state thread_state;
	/* Nobody waits for keys now: an answer is late, in whatever state. */
	bool late;
	int socket;	       /* to be shut down at the end; -1 */
	struct help_key *keys; /* by index modulo keys_count; NULL: none */
	uint64_t known;	       /* keys in it */
	uint64_t answered; /* keys have been requested for fresh numbers below
			      this */
	uint64_t read_end; /* fresh numbers below this may be being read */
	enum help_plan_state plan_state;
	/* The reader closes this gate, so that nothing is read before the mount
	 * has the beginning of the plan. The thread opens it then, or when no
	 * plan is wanted any more. */
	bool gated;
	uint64_t in_row; /* hits since the last read through the mount; starts
			    as after an epoch of hits */
	uint64_t due_ns; /* no wake-up for progress before this time */
	struct help_direct direct,
		told;	      /* since the start, and those already reported */
	uint64_t tell_due_ns; /* do not report before this time */
	bool fetching;	      /* what the mount said last: at full speed */
	struct fetch_rates rates; /* of this plan and those before */
	uint64_t returns;	  /* daemons after the first */

	/* Set once by the thread, before ON. */
	uid_t owner; /* of the mount */
	int tier_fds[ANSWER_TIERS_MAX];
	unsigned tiers;

	/*
	 * The thread's. While it does not work, others may look, with the lock.
	 */
	struct talk talk;
	char below[PATH_MAX];
	struct schedule schedule; /* a copy of the planner's */
	char *request;
	uint64_t *asked;	    /* indices of a request */
	struct answer_key *answers; /* to them */
	enum help_work last;	    /* keys and names for the plan take turns */
	uint64_t back_ns;	    /* when the last daemon was reached */
	struct help_plan {
		uint64_t first; /* fresh number of the first in it */
		uint64_t added; /* fresh numbers below this are in the plan */
		uint64_t positions; /* of the plan */
		bool full;	    /* the mount takes no more until a report */
		uint64_t reported;  /* fresh number */
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

/* Examples with fresh numbers below `fresh`, and steps below `step`, were
 * returned. The next `begun` examples may be being read. */
struct help_report {
	uint64_t fresh, step, begun;
	uint64_t step_ns; /* of the trainer; 0: not known */
	struct help_direct untold;
};
/* Offer the mount a plan that begins there. Its refusal is not a failure.
 * -errno: the conversation is over. */
int help_plan_begin(struct mount_help *m, const struct help_report *now);
/* Add names to it, up to fresh number `to`. As above. */
int help_plan_add(struct mount_help *m, uint64_t to);
int help_plan_report(struct mount_help *m, const struct help_report *now);
/* Ask for keys from fresh number `from` on, `most` of them; *next is the first
 * not asked for. The answers are in m->answers, *count of them. */
int help_keys_ask(struct mount_help *m, uint64_t from, uint32_t most,
	uint32_t *count, uint64_t *next);

/* -- help_rates.c -- */

/* Take rates from the answer to a report: 1, 0 (refused), or -errno. */
int help_take_rates(struct mount_help *m, const char *line, size_t bytes);

/* -- help_tell.c -- */

/* The direct hits not yet reported; they count as reported from now on. Needs
 * the lock. */
struct help_direct help_untold(struct mount_help *m);
/* A report that no daemon counts: its hits are in the next one. */
void help_not_told(struct mount_help *m, const struct help_direct *untold);
/* Write the counts as members of a request; nothing if there are none. */
#define HELP_DIRECT_TEXT 96
int help_put_direct(const struct help_direct *untold, char *text, size_t size);
/* Report direct hits to the mount. The thread's. -errno: the conversation is
 * over. */
int help_tell(struct mount_help *m, const struct help_direct *untold);
/* The same at the end, with a short time limit. */
void help_tell_last(struct mount_help *m, const struct help_direct *untold);

/* -- help_ask.c -- */

/* Send m->request and wait. If the answer is late, waiting reads go on without
 * it. */
int help_ask(struct mount_help *m, size_t bytes, const char **line,
	size_t *line_bytes);

/* -- help_work.c -- */

/* The state of the run when there was something to do. */
struct help_now {
	uint64_t answered, plan_end;
	struct help_report report;
};

/* The state of the run. Asserts the lock. */
struct help_run help_look(const struct mount_help *m);
/* Sleep until something is due, or HELP_LOOK_NS. Takes the lock. */
enum help_work help_wait_for_work(struct mount_help *m, struct help_now *now);

#endif
