/* SPDX-License-Identifier: MIT */
/*
 * A loader with a share: what the files share_member*.c have in common. Names
 * of functions and structs begin with shared_.
 *
 * A loader with a share is always a member of it, even if its own process
 * hosts. The states of a job, and the calls that change them:
 *
 *	FOLLOWING
 *	  -> LOST       shared_lose(), the thread: the host has ended
 *	  -> PARTED     shared_part(): the host parts the job, as it is slow
 *	LOST
 *	  -> FOLLOWING  follow_link(): it has joined the next host
 *	  -> PARTED     find_next_host(): it is too late for that
 *	  -> PARTED     shared_part(): the lost host had parted it
 *	PARTED
 *	  -> ALONE      go_alone(): its own engine is open
 *	  -> FOLLOWING  follow_link(), if it looked for the next host meanwhile
 *	ALONE
 *	  -> FOLLOWING  come_back(): the host has batches for it again
 *
 * Its link to a host, which a job that is ALONE may also have:
 *
 *	NONE
 *	  -> UP         follow_link()
 *	UP
 *	  -> LOST       shared_lose()
 *	LOST
 *	  -> UP         read_the_rest(): its last messages are read, and then
 *	  -> NONE       shared_hang_up()
 */
#ifndef SHARE_MEMBER_IMPL_H
#define SHARE_MEMBER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/base/list.h"
#include "common/base/magic.h"
#include "loader/core/ready.h"
#include "loader/share/share.h"
#include "loader/share/share_host_engine_impl.h"
#include "loader/share/share_member.h"
#include "loader/share/share_run_impl.h"

/* -- share_member_area.c: memory of a host, and what is lent of it --------- */

struct shared;
struct shared_area;

/* A shared batch that was announced. */
struct shared_whole {
	struct list node; /* in the queue, while it has slices to lend */
	struct shared_area *area;
	struct share_batch said;
	uint32_t lent; /* slices that were lent or skipped */
	uint32_t left; /* slices that are not released yet */
	bool used, release_due;
	bool taken; /* shared_take() has allowed its use */
};

/* A slice of a shared batch; it may be lent. */
struct shared_slice {
	struct lent_batch lent_batch;
	struct shared_whole *whole;
	bool lent;
};

/* The memory of one host. All members are guarded by the lock of `owner`. */
struct shared_area {
	struct shared *owner;
	struct share_area memory;
	size_t slot_bytes;
	uint32_t slots;
	uint32_t word; /* index of this job in the words */
	/* The wholes in use, and the owner if this is its current area */
	uint32_t refs;
	struct shared_whole *wholes;
	struct shared_slice *slice; /* slot by slot */
};

int shared_area_new(struct shared_area **out, struct shared *owner,
	uint32_t slices, const struct share_segment *said, int fd);
void shared_area_unref(struct shared_area *area);
/* Make lent slices independent of the host. Returns 0 or -ENOMEM. */
int shared_area_keep(struct shared_area *area, uint32_t slices);

/* -- share_member.c: the source of batches --------------------------------- */

enum shared_state {
	SHARED_FOLLOWING,
	SHARED_LOST,
	SHARED_PARTED,
	SHARED_ALONE,
};

/* Batches that this job has consumed. */
struct shared_count {
	uint64_t steps, fresh, served, epochs, substituted;
	uint64_t trainer_ns, wait_ns, bytes;
	uint64_t first_ns, last_ns; /* when batches were returned */
	uint64_t parted;	    /* times that it went on alone */
	/* The work of engines of this job alone that have been closed. */
	uint64_t decodes, files_read, bytes_read;
	struct hash_stream *stream;
};

/* The thread that looks for the next host when a host has ended. */
struct shared_follower {
	pthread_t thread;
	int stop_fd, lost_fd; /* set once: they wake it */
	/* NONE -> RUNS: start_follower(), before there is a thread; RUNS ->
	 * ENDED: the thread, at its end; ENDED -> NONE: shared_leave(). */
	enum { FOLLOWER_NONE, FOLLOWER_RUNS, FOLLOWER_ENDED } state;
	pthread_cond_t ended;
};

/* The link to a host, and what the host has said. */
struct shared_link {
	struct share_link to;
	enum { LINK_NONE, LINK_UP, LINK_LOST } state;
	/* Batches that come before the host's ALONE are not for this job. This
	 * concerns messages that the host has sent, so it is also valid while
	 * the link is LOST. */
	bool stale;
	uint32_t word; /* index of this job in that host's words */
	uint64_t generation;
	struct share_view view; /* the last one that came */
	/* The last view of a run that had begun: a host that still waits for
	 * jobs does not list them all. */
	struct share_view before;
	uint64_t views; /* how many have come */
	/* When a view was last requested; 0: not since the last batch. */
	uint64_t viewed_ns;
	bool answered;	     /* that view has come */
	uint64_t expect;     /* the next shared step to be announced */
	uint64_t asked;	     /* WAIT was sent for this shared step + 1 */
	uint64_t told_alone; /* the shared step of the last ALONE + 1 */
};

/* The lent batches, and the place in the member's own stream. */
struct shared_lending {
	struct shared_area *area;      /* the current one, or NULL */
	struct list queue;	       /* wholes with slices to lend */
	uint32_t lent;		       /* slices */
	uint64_t next;		       /* the next own step */
	struct schedule_cursor cursor; /* at `next` */
	struct schedule_slot *slots;   /* of a batch */
	uint64_t epoch; /* of the newest fresh example returned */
};

/* The batches that a job makes itself. */
struct shared_alone {
	struct batch_source *engine;  /* SHARED_ALONE, or NULL */
	struct batch_source *retired; /* of a job that is back: to be closed */
	uint64_t from;		      /* the engine's first step */
};

struct shared {
	struct batch_source source;
	uint32_t magic;
	/* Set once. */
	pid_t pid;
	struct share_place *place;
	int poll_fd;	    /* all that a call waits for */
	struct ready ready; /* readable when refrain_next() would not wait; set
			       with the lock */
	/* Decremented (release) as a call's last access */
	_Atomic uint32_t callers;

	pthread_mutex_t lock;
	/* The lock guards all members below. */
	struct shared_run run;
	enum shared_state state;
	/* GOES_ON -> ENDED: the host said so; -> CLOSING, from both: the user
	 * closes the loader. */
	enum { SHARED_GOES_ON, SHARED_ENDED, SHARED_CLOSING } course;
	int failed;
	struct error message;
	bool change_due; /* shared_unlock() must wake the thread. */
	bool left;	 /* hanging threads may access it: never free it */
	uint32_t refs;	 /* the loader, and each slice that is lent */
	struct shared_follower follower;
	struct shared_link link;
	struct shared_lending lending;
	struct shared_alone alone;
	struct shared_host *host; /* of this process, or NULL */
	uint64_t waited_ns;	  /* in calls that timed out */
	struct shared_count count;
};

static inline struct shared *shared_of(const struct batch_source *source)
{
	return OBJECT(
		shared, CONTAINER_OF((uintptr_t)source, struct shared, source));
}

/* -- share_member_link.c: what the host says and is told; with the lock ---- */

/* Release the lock and wake those who wait for what has changed. */
void shared_unlock(struct shared *sh);
/* Add the descriptor to poll_fd, or remove it. Needs no lock. */
void shared_poll(struct shared *sh, int fd, bool on);
/* Stop the batch source for this reason. Returns the error. */
int shared_fail(struct shared *sh, int error, const char *why);
/* Set the position in this job's own stream. */
int shared_seek(struct shared *sh, uint64_t own_step, struct error *err);
/* The number of slices of a shared batch; the last batch of the run may have
 * fewer. */
uint32_t shared_slices(const struct shared *sh, const struct shared_whole *w);
/* Read the host's messages until a batch has come. Returns false if the host is
 * lost. */
bool shared_receive(struct shared *sh, bool all);
void shared_lose(struct shared *sh);
/* Close the link. */
void shared_hang_up(struct shared *sh);
/*
 * May the batch be used? If the host could part this job, this first sends
 * TAKE. Returns 0, -EAGAIN if the host does not read its messages, or -ESTALE
 * if it has parted this job.
 */
int shared_take(struct shared *sh, struct shared_whole *w);
/* Has the current host parted this job? The host may be gone already. */
bool shared_was_parted(const struct shared *sh);
/* Let the job make its own batches, beginning with the first that it has not
 * taken. */
void shared_part(struct shared *sh);
/* Tell the host the position of this job, which makes its own batches. */
void shared_tell_alone(struct shared *sh);
/* Send the releases that could not be sent to the host before. */
void shared_tell_released(struct shared *sh);
/* Free the loader, when no references are left. Call it without the lock. */
void shared_free(struct shared *sh);
/* Drop a reference, and release the lock. */
void shared_unref(struct shared *sh);

/* -- share_member_ask.c ---------------------------------------------------- */

/* Implement the questions of struct loader_ops. */
const struct settings *shared_settings(const struct batch_source *source);
const struct dataset *shared_dataset(const struct batch_source *source);
uint64_t shared_steps_left(struct batch_source *source);
uint64_t shared_step(struct batch_source *source);
uint64_t shared_epoch_end(struct batch_source *source, uint64_t epoch);
void shared_failure(struct batch_source *source, struct refrain_failure *out);
int shared_save(struct batch_source *source, void *buf, size_t size);
int shared_save_at(
	struct batch_source *source, uint64_t step, void *buf, size_t size);
int shared_echo_log(struct batch_source *source, char *buf, size_t size);
int shared_memory(
	struct batch_source *source, const void **base, size_t *bytes);
void shared_stats(struct batch_source *source, struct refrain_stats *out);
/* Set the message of a time-out. With `ask` the host is asked for a view, and
 * the lock is released during that. */
int shared_timed_out(struct shared *sh, uint64_t waited_ns, bool ask);

/* -- share_member_join.c --------------------------------------------------- */

/* Join the share, and start the thread. */
int shared_join(struct shared *sh, struct error *err);
/* End the thread and the running calls. Returns 0, or the number of hanging
 * ones that are left behind. */
int shared_leave(struct shared *sh);

#endif
