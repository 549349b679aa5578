/* SPDX-License-Identifier: MIT */
/*
 * A dataset that lies on a mount of refrain: the loader tells the mount its
 * order, and opens what the mount has in its tiers by itself. One thread talks
 * with the daemon, over the control socket; whatever goes wrong there only
 * means that the loader reads as on any file system. Reads wait for the first
 * keys, and where they overtake the keys, for MOUNT_LATE_MS at most.
 *
 *	STARTING --> ON --> OFF      STARTING: the mount is being found
 *	    +---------------^        OFF: no help, or no more of it
 */
#ifndef LOADER_MOUNT_H
#define LOADER_MOUNT_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "loader/answer.h"
#include "plan/plan.h"

#define MOUNT_LATE_MS 250

struct refrain_loader;
struct entry;

/* -- mount_talk.c: the socket; one thread at a time -- */

struct talk {
	int fd;
	char *in; /* what came; a line of an answer is at its beginning */
	size_t got, room;
};

/* Connect; -errno. */
int talk_open(struct talk *t, const char *path);
void talk_close(struct talk *t);
/* -errno; the talk is of no more use then. */
int talk_send(struct talk *t, const char *request, size_t bytes);
/*
 * Wait for the answer to what was sent, without its newline, good until the
 * next call. -ETIMEDOUT: it may be waited for again.
 */
int talk_wait(struct talk *t, int timeout_ms, const char **line, size_t *bytes);

/* -- mount_find.c -- */

/*
 * The control socket of the mount that a directory lies on, and what leads
 * from the mount's root to the directory: "" or "a/b/". -ENODATA, -errno.
 */
int mount_find(int dir_fd, char socket[PATH_MAX], char below[PATH_MAX]);

/* -- mount.c -- */

enum mount_state { MOUNT_OFF, MOUNT_STARTING, MOUNT_ON };

/* What is known of an example: where index + 1 is 0, nothing. */
struct mount_key {
	struct hash128 key;
	uint32_t bytes; /* 0: read it through the mount */
	uint32_t index_1;
};

struct mount {
	/* Set once, before the thread is there. */
	struct refrain_loader *l;
	uint64_t first_fresh; /* number of the handle's first fresh example */
	uint64_t epoch_fresh; /* fresh examples of an epoch, of this rank */
	uint64_t keys_count;
	uint64_t charged; /* of the loader's memory */

	pthread_t thread;
	bool started; /* the caller of refrain_open() */

	/* The lock, all of these. */
	enum mount_state state;
	bool ended;		/* the thread has */
	bool late;		/* nobody waits for keys now */
	bool waiting;		/* the thread, for `moved` */
	pthread_cond_t moved;	/* the thread: look again */
	int socket;		/* to be shut down at the end; -1 */
	struct mount_key *keys; /* by index modulo keys_count; NULL: none */
	uint64_t known;		/* keys in it */
	uint64_t answered;	/* fresh numbers before: asked for */
	uint64_t in_row;	/* hits since something was read through the
				   mount; at first as after an epoch of hits */
	uint64_t due_ns;	/* not to be woken up before for progress */

	/* Set once by the thread, before ON. */
	int tier_fds[ANSWER_TIERS_MAX];
	unsigned tiers;

	/* The thread's; while it is `waiting`, others look, with the lock. */
	struct talk talk;
	char below[PATH_MAX];
	struct schedule schedule; /* a copy of the planner's */
	char *request;
	uint64_t *asked;	    /* indices of a request */
	struct answer_key *answers; /* to them */
	bool planning;		    /* the mount takes plans of ours */
	bool plan_turn;		    /* names for the plan before keys */
	bool begun;		    /* there is a plan */
	struct mount_plan {
		uint64_t first;	    /* fresh number of the first in it */
		uint64_t added;	    /* fresh numbers before: in the plan */
		uint64_t positions; /* of the plan */
		bool full;	    /* the mount takes no more for now */
		uint64_t reported;  /* fresh number */
		uint64_t step_ns;   /* that the mount was told */
		struct schedule_echo echo;
	} plan;
};

/*
 * Before planner and reader begin; l->mount stays NULL where there can be no
 * help. -ENOMEM is none.
 */
void mount_new(struct refrain_loader *l);
/* Start the thread; signals are blocked. Reads wait for it from now on. */
void mount_start(struct refrain_loader *l);
/* After `closing` was set: false if the thread does not end in time. */
bool mount_stop(struct refrain_loader *l, uint64_t until_ns);
void mount_free(struct refrain_loader *l);

/* All below: under the lock. */

/* A batch was returned. */
void mount_moved(struct refrain_loader *l);
/* Something is read from a tier, or (false) through the mount. */
void mount_note_read(struct refrain_loader *l, bool hit);
/* False: it is soon known whether there is an entry; reader_pump() comes. */
bool mount_knows(struct refrain_loader *l, const struct entry *e);
/* The key of the entry to be tried, or NULL. */
const struct mount_key *mount_key(
	const struct refrain_loader *l, const struct entry *e);
/* -- mount_plan.c: the thread's -- */

#define MOUNT_NAMES_MAX 2048u
#define MOUNT_REQUEST_BYTES ((size_t)512 << 10)

/* A plan from there on is offered; not to be taken is no failure. -errno: the
 * talk is over. */
int mount_plan_begin(struct mount *m, uint64_t fresh, uint64_t step);
/* Add names to it, up to fresh number `to`. As above. */
int mount_plan_add(struct mount *m, uint64_t to);
/* Fresh examples before `fresh` were returned, as were steps before `step`; the
 * reader was given those before `read`. */
struct mount_report {
	uint64_t fresh, step, read;
	uint64_t step_ns; /* of the trainer; 0: not known */
};
int mount_plan_report(struct mount *m, const struct mount_report *now);
/* Ask for keys from fresh number `from` on, `most` of them; *next is the first
 * not asked for. The answers are in m->answers, *count of them. */
int mount_keys_ask(struct mount *m, uint64_t from, uint32_t most,
	uint32_t *count, uint64_t *next);

/* mount.c: send m->request and wait; reads that wait are let go if it is late.
 */
int mount_ask(
	struct mount *m, size_t bytes, const char **line, size_t *line_bytes);

#endif
