/* SPDX-License-Identifier: MIT */
/*
 * A loader with a share. This header is shared by the files share_member*.c.
 * Names of functions and structs begin with shared_.
 *
 * A loader with a share is always a member of it, even if the host is in the
 * same process. The states of a job, and the calls that change them:
 *
 *	FOLLOWING
 *	  -> LOST       shared_lose(), the thread: the host has ended
 *	  -> PARTED     shared_part(): the host parts the job, which is slow
 *	LOST
 *	  -> FOLLOWING  follow_link(): the job has joined the next host
 *	  -> PARTED     find_next_host(): it is too late to join
 *	  -> PARTED     shared_part(): the lost host had parted the job
 *	PARTED
 *	  -> ALONE      go_alone(): the job's own engine is open
 *	  -> FOLLOWING  follow_link(): the job was looking for the next host
 *	ALONE
 *	  -> FOLLOWING  come_back(): the host has batches for the job again
 *
 * The states of a job's link to a host. A job that is ALONE may have one, too:
 *
 *	NONE
 *	  -> UP         follow_link()
 *	UP
 *	  -> LOST       shared_lose()
 *	LOST
 *	  -> UP         read_the_rest(), while it reads the last messages
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

/* -- share_member_area.c: memory of a host, and the slices of it that are lent
 */

struct shared;
struct shared_area;

/* A shared batch that the host has announced. */
struct shared_whole {
	struct list node; /* in the queue while some slices are not lent yet */
	struct shared_area *area;
	struct share_batch said;
	uint32_t lent; /* number of slices that were lent or skipped */
	uint32_t left; /* number of slices that are not released yet */
	bool used, release_due;
	bool taken; /* shared_take() has allowed this job to use it */
};

/* A slice of a shared batch. It may be lent. */
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
	uint32_t word; /* index of this job in struct share_words */
	/* ^The number of wholes in use, plus 1 while this is the current area
	 * of the owner */
	uint32_t refs;
	struct shared_whole *wholes;
	/* The slices of slot 0, then those of slot 1, ... */
	struct shared_slice *slice;
	/* For each slice, the offsets of the rows of its fields; NULL: there
	 * are no fields */
	uint64_t *offsets;
};

int shared_area_new(struct shared_area **out, struct shared *owner,
	uint32_t slices, const struct share_segment *said, int fd);
/* Returns the memory for the offsets of a slice, or NULL without fields. */
uint64_t *shared_area_offsets(
	const struct shared_area *area, const struct shared_slice *slice);
void shared_area_unref(struct shared_area *area);
/* Copy lent slices to private memory, so that they no longer need the host.
 * Returns 0 or -ENOMEM. */
int shared_area_keep(struct shared_area *area, uint32_t slices);

/* -- share_member.c: the batch source -------------------------------------- */

enum shared_state {
	SHARED_FOLLOWING,
	SHARED_LOST,
	SHARED_PARTED,
	SHARED_ALONE,
};

/* Counters of the batches that this job has consumed. */
struct shared_count {
	uint64_t steps, fresh, served, epochs, substituted;
	uint64_t trainer_ns, wait_ns, bytes;
	/* Times at which the first and the last batch were returned */
	uint64_t first_ns, last_ns;
	uint64_t parted; /* how often the job has continued alone */
	/* the work of this job's own engines that were closed; other members
	 * are 0 */
	struct refrain_stats work;
	struct hash_stream *stream;
};

/* The thread that finds the next host when a host has ended. */
struct shared_follower {
	pthread_t thread;
	int stop_fd, lost_fd; /* set once; eventfds that wake the thread */
	/* NONE -> RUNS: start_follower(), before the thread exists; RUNS ->
	 * ENDED: the thread, at its end; ENDED -> NONE: shared_leave(). */
	enum { FOLLOWER_NONE, FOLLOWER_RUNS, FOLLOWER_ENDED } state;
	pthread_cond_t ended;
};

/* The link to a host, and the contents of its messages. */
struct shared_link {
	struct share_link to;
	enum { LINK_NONE, LINK_UP, LINK_LOST } state;
	/* Batches that are announced before the host's ALONE are not for this
	 * job. This applies to messages that were sent already, so it also
	 * holds while the link is LOST. */
	bool stale;
	uint32_t word; /* index of this job in the host's share_words */
	uint64_t generation;
	struct share_view view; /* the newest view */
	/* The newest view of a host that had begun its stream. Before a host
	 * has begun, its view may lack jobs that have not joined again yet. */
	struct share_view before;
	uint64_t views; /* number of views that have come */
	/* Time of the last request for a view; 0: there was none since the last
	 * batch. */
	uint64_t viewed_ns;
	bool answered;	 /* the requested view has come */
	uint64_t expect; /* the next shared step that will be announced */
	/* the shared step for which WAIT was last sent, plus 1 */
	uint64_t asked;
	/* the shared step in the last ALONE that was sent, plus 1 */
	uint64_t told_alone;
};

/* The lent batches, and the position in the member's own stream. */
struct shared_lending {
	struct shared_area *area; /* memory of the present host, or NULL */
	/* list of struct shared_whole with slices that are not lent yet */
	struct list queue;
	uint32_t lent; /* number of lent slices */
	uint64_t next; /* the next step of the own stream */
	/* The position in the schedule at `next` */
	struct schedule_cursor cursor;
	struct schedule_slot *slots; /* buffer for the slots of one batch */
	uint64_t epoch; /* epoch of the newest fresh example in a lent batch */
};

/* The batches that the job makes itself. */
struct shared_alone {
	/* this job's own engine; NULL unless SHARED_ALONE */
	struct batch_source *engine;
	/* The engine of a job that follows a host again; it has to be closed */
	struct batch_source *retired;
	uint64_t from; /* the first step of the engine */
};

struct shared {
	struct batch_source source;
	uint32_t magic;
	/* Set once. */
	pid_t pid;
	struct share_place *place;
	int poll_fd; /* an epoll with everything for which a call waits */
	/* Readable if refrain_next() would return at once; changed with the
	 * lock held */
	struct ready ready;
	/* Number of running calls. Decrementing it (release) is the last access
	 * of a call */
	_Atomic uint32_t callers;

	pthread_mutex_t lock;
	/* The lock guards all members below. */
	struct shared_run run;
	enum shared_state state;
	/* GOES_ON -> ENDED: the host has ended the stream. GOES_ON or ENDED ->
	 * CLOSING: the user closes the loader. */
	enum { SHARED_GOES_ON, SHARED_ENDED, SHARED_CLOSING } course;
	int failed;
	struct error message;
	bool change_due; /* shared_unlock() must wake the follower's thread */
	bool left;	 /* never freed, because threads that hang may use it */
	uint32_t refs;	 /* 1 for the loader, and 1 for each lent slice */
	struct shared_follower follower;
	struct shared_link link;
	struct shared_lending lending;
	struct shared_alone alone;
	struct shared_host *host; /* the host in this process, or NULL */
	uint64_t waited_ns; /* time in calls of refrain_next() that timed out */
	struct shared_count count;
};

static inline struct shared *shared_of(const struct batch_source *source)
{
	return OBJECT(
		shared, CONTAINER_OF((uintptr_t)source, struct shared, source));
}

/* -- share_member_link.c: messages from and to the host; with the lock held  */

/* Release the lock, and wake the threads that wait for what has changed. */
void shared_unlock(struct shared *sh);
/* Add the descriptor to poll_fd, or remove it. Does not need the lock. */
void shared_poll(struct shared *sh, int fd, bool on);
/* Stop the batch source with this error and message. Returns the error. */
int shared_fail(struct shared *sh, int error, const char *why);
/* Set the position in this job's own stream. Returns 0 or -errno. */
int shared_seek(struct shared *sh, uint64_t own_step, struct error *err);
/* Returns the number of slices of a shared batch. The last batch of the run may
 * have fewer than the others. */
uint32_t shared_slices(const struct shared *sh, const struct shared_whole *w);
/* Read the host's messages until a batch has come or, with `all`, until there
 * are no more. Returns false if the host is gone. */
bool shared_receive(struct shared *sh, bool all);
void shared_lose(struct shared *sh);
/* Close the link to the host. */
void shared_hang_up(struct shared *sh);
/*
 * May this job use the batch? If the host may part this job, this first sends
 * TAKE. Returns 0, -EAGAIN if the host does not read its messages, or -ESTALE
 * if it has parted this job.
 */
int shared_take(struct shared *sh, struct shared_whole *w);
/* Has the present host parted this job? The host may have ended already. */
bool shared_was_parted(const struct shared *sh);
/* Make the job produce its own batches, beginning with the first one that it
 * has not taken. */
void shared_part(struct shared *sh);
/* Tell the host the position of this job, if it makes its own batches. */
void shared_tell_alone(struct shared *sh);
/* Send the messages RELEASE that could not be sent before. */
void shared_tell_released(struct shared *sh);
/* Free the loader, to which there are no references. Call this without the
 * lock. */
void shared_free(struct shared *sh);
/* Drop a reference to the loader. The caller holds the lock, and this releases
 * it. */
void shared_unref(struct shared *sh);

/* -- share_member_ask.c ---------------------------------------------------- */

/* The functions of struct loader_ops for a loader with a share. */
const struct settings *shared_settings(const struct batch_source *source);
const struct dataset *shared_dataset(const struct batch_source *source);
uint64_t shared_steps_left(struct batch_source *source);
uint64_t shared_step(struct batch_source *source);
uint64_t shared_epoch_end(struct batch_source *source, uint64_t epoch);
int shared_fresh(struct batch_source *source, uint64_t f, uint64_t *index);
void shared_failure(struct batch_source *source, struct refrain_failure *out);
int shared_save(struct batch_source *source, void *buf, size_t size);
int shared_save_at(
	struct batch_source *source, uint64_t step, void *buf, size_t size);
int shared_echo_log(struct batch_source *source, char *buf, size_t size);
int shared_memory(
	struct batch_source *source, const void **base, size_t *bytes);
void shared_stats(struct batch_source *source, struct refrain_stats *out);
/* Add the reads, the decodes and what came of them. */
void shared_add_work(
	struct refrain_stats *to, const struct refrain_stats *from);
/* Set the message for a time-out. With `ask`, this first asks the host for a
 * view, and releases the lock while it waits for the answer. */
int shared_timed_out(struct shared *sh, uint64_t waited_ns, bool ask);

/* -- share_member_join.c --------------------------------------------------- */

/* Join the share, and start the follower's thread. */
int shared_join(struct shared *sh, struct error *err);
/* Stop the thread and the running calls. Returns 0, or 1 if the thread or a
 * call hangs and is left behind. */
int shared_leave(struct shared *sh);

#endif
