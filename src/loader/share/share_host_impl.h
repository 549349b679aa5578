/* SPDX-License-Identifier: MIT */
/*
 * The structs and functions of the host's files. Only the host's thread uses
 * these structs, except for members that are set once or guarded by the lock.
 * The states, and the calls that change them:
 *
 *	the host
 *	  GATHERS -> RUNS       host_begin(): all awaited jobs have joined
 *	  GATHERS -> OVER       host_begin(): there is no stream
 *	  RUNS -> OVER          host_pump(): the last batch, or a failure
 *	a connection
 *	  FREE -> NEW           host_accept()
 *	  NEW -> FOLLOWS        host_member_join()
 *	  NEW -> ALONE          host_member_join(): the job continues alone
 *	  NEW -> PARTING        host_member_join(): the step is too far ahead
 *	  FOLLOWS -> PARTING    host_part()
 *	  PARTING -> ALONE      host_member_tell_alone(): ALONE was sent
 *	  ALONE -> FOLLOWS      host_member_return()
 *	  all -> FREE           host_member_leave()
 */
#ifndef SHARE_HOST_IMPL_H
#define SHARE_HOST_IMPL_H

#include <pthread.h>

#include "common/base/loop.h"
#include "common/base/magic.h"
#include "loader/share/share_place_impl.h"
#include "loader/share/share_wire_impl.h"

#define NO_STEP UINT64_MAX

/* The arguments are the share's name and step, the job's step, and the number
 * of slots. */
#define HOST_AHEAD                                                             \
	"share '%s' is at step %llu, and this job's state is at step %llu, "   \
	"more than its %u batches ahead; restore a state of the same step "    \
	"as the others, set share_slow to solo, or choose another name"

enum member_state {
	MEMBER_FREE,
	MEMBER_NEW,
	MEMBER_FOLLOWS,
	/* The member must make its own batches, but the host has not sent it
	 * ALONE yet */
	MEMBER_PARTING,
	MEMBER_ALONE,
};

/* A connection. After its job has joined, it is a member. */
struct host_member {
	enum member_state state;
	int fd; /* -1: the element is free */
	int pidfd;
	pid_t pid;
	uint64_t born;
	uint64_t id;
	char label[SHARE_LABEL_MAX];
	uint32_t batch;	  /* size of the member's own batches */
	uint32_t wish;	  /* enum share_wish */
	uint64_t next;	  /* the next step to announce to the member */
	uint32_t changes; /* number of changes sent to the member */
	/* The last message about the stream that was sent to the member.
	 * TOLD_END is the final one. */
	enum { TOLD_NOTHING, TOLD_SEGMENT, TOLD_END } told;
	/* A view must be sent when the socket has room. */
	bool view_due;
	bool armed; /* the loop reports when the socket has room */
	/* Time since when the member has waited for a batch; 0: it does not
	 * wait. */
	uint64_t waiting_ns;
	/* The next four members are explained in share_host_solo.c. */
	uint32_t grace_s; /* as in share_hello; 0: the member is never parted */
	bool released;	  /* the member has released a batch before */
	/* How long others have waited for this member recently */
	uint64_t slow_ns;
	/* How long others have waited for this member during its present pause
	 * at the end of an epoch */
	uint64_t paused_ns;
};

/* A job of the previous host, which may join again. */
struct expected {
	uint64_t id;
	int pidfd; /* -1: the host no longer waits for this job */
	pid_t pid;
	bool solo; /* the job is parted if it is slow */
};

/* A slot, with one batch that the host's engine has lent. */
struct host_slot {
	struct lent_batch *lent; /* NULL: the slot is free */
	uint64_t refs; /* bits of members that must release the batch */
	/* Bits of members that are using the batch; see struct share_words */
	uint64_t taken;
	bool begins_epoch; /* the batch before this one ended an epoch */
	struct share_batch announced;
};

struct share_host {
	uint32_t magic;
	/* Set once. */
	struct share_place *place;
	struct share_host_config config;
	pthread_t thread;
	int listen_fd, done_fd;
	uint64_t started_ns;
	struct loop loop;

	struct host_member members[SHARE_MEMBERS_MAX];
	struct expected expected[SHARE_MEMBERS_MAX];
	uint32_t expected_n;
	uint32_t joined; /* number of members at present */
	uint32_t solos; /* number of members that are parted if they are slow */
	uint64_t came;	/* number of members that have ever joined */
	uint64_t own;	/* id of this process's job; 0 after it has joined */
	enum { HOST_GATHERS, HOST_RUNS, HOST_OVER } state;
	/* Tasks to do after the current event, in any state. */
	bool accept_due; /* connections wait to be accepted */
	/* Time at which to listen again, because descriptors have run out; 0:
	 * the host listens */
	uint64_t accept_ns;
	/* A member has left, for which others may have waited, so send what is
	 * due */
	bool tell_due;
	bool stream_armed; /* the loop reports when the source has a batch */
	struct share_stream stream;
	struct host_slot *slots; /* the slots of the stream */
	uint32_t held;		 /* number of slots that are not free */
	uint64_t first;		 /* the first step of the stream */
	uint64_t end;		 /* the step after the newest batch */
	uint32_t changes; /* number of changes of the echo factor so far */
	uint64_t malformed;
	bool ended_epoch;   /* the newest batch was the last one of an epoch */
	uint64_t judged_ns; /* time of the last call of host_judge() */
	/* Bits of members for which others have waited since judged_ns */
	uint64_t blamed;
	uint64_t free_ns; /* time for which no member was blamed */
	int failure;
	struct error why; /* the message of the failure */
	int closed;	  /* the result of closing the source */

	pthread_mutex_t lock;
	int ended; /* guarded by the lock: `failure` for other threads */
	struct error said; /* guarded by the lock: `why` for other threads */
};

static inline bool member_has_joined(const struct host_member *m)
{
	return m->state >= MEMBER_FOLLOWS;
}

/* Does the member make its own batches? */
static inline bool member_is_alone(const struct host_member *m)
{
	return m->state >= MEMBER_PARTING;
}

/* Has the stream begun? It may have ended since. */
static inline bool host_has_begun(const struct share_host *h)
{
	return h->state != HOST_GATHERS;
}

static inline uint32_t host_slots(const struct share_host *h)
{
	return h->stream.slots;
}

static inline const struct share_area *host_area(const struct share_host *h)
{
	return &h->stream.area;
}

/* The kinds of events. The number in an event is the index of its member, or
 * its index in `expected`. */
enum host_event {
	EVENT_LISTEN,
	EVENT_STREAM,
	EVENT_SOCKET,  /* with the number of the member */
	EVENT_PROCESS, /* with the number of the member */
	EVENT_EXPECTED /* with the index in `expected` */
};

/* -- share_host_slots.c -- */

/* Watch a descriptor for these events. On -errno it is watched as before. */
int host_watch(struct share_host *h, int fd, uint32_t events,
	enum host_event what, uint32_t number);
/* End the run with this failure. */
void host_fail(struct share_host *h, int error, const struct error *why);
void host_free_slot(struct share_host *h, struct host_slot *s);
/* Release all batches that the member holds. If `taken` is false, it keeps
 * those that it has taken. */
void host_drop(struct share_host *h, uint32_t member, bool taken);
/* Returns the slot with the batch of this step, or NULL. */
struct host_slot *host_slot_of(struct share_host *h, uint64_t step);
/* Returns the oldest step from which on all batches are in slots, or `end` if
 * there are no batches. */
uint64_t host_oldest(struct share_host *h);
/* Is this a member that gets batches of the share? */
bool host_follows(const struct share_host *h, uint32_t member);
/* Returns the bits of the members that need this step. */
uint64_t host_wanted_by(const struct share_host *h, uint64_t step);
/* Set the member's bit in all slots from its next step on. */
void host_member_ref(struct share_host *h, uint32_t n);
/* Returns the time since when a member has waited for a batch, or 0 if none
 * waits. */
uint64_t host_demand_ns(const struct share_host *h);

/* -- share_host_tell.c -- */

/* Send the member all messages that are due. */
void host_member_flush(struct share_host *h, uint32_t n);
/* Send all members the messages that are due. */
void host_tell_all(struct share_host *h);
void host_member_view(struct share_host *h, uint32_t n);
void host_tell_view(struct share_host *h);
void host_refuse(int fd, int error, const char *text);
/* Returns the number of jobs of the previous host for which this host still
 * waits. */
uint32_t host_missing(const struct share_host *h);

/* -- share_host_members.c -- */

void host_accept(struct share_host *h);
/* Read and handle the messages of a member. */
void host_member_read(struct share_host *h, uint32_t n);
void host_member_leave(struct share_host *h, uint32_t n);
void expected_drop(struct share_host *h, uint32_t n);
/* Close *fd, a descriptor of a member, unless it is -1, and set it to -1. This
 * also removes it from the loop: if a forked child has a copy, closing alone
 * does not stop its events. */
void host_close_fd(struct share_host *h, int *fd);

/* -- share_host_solo.c -- */

/* Part the members for which others have waited too long, which may free slots.
 * Call this after each event. Returns true if a member was parted. */
bool host_judge(struct share_host *h);
/* Returns the minimum time until a member may have to be parted, or LOOP_NEVER
 * if that is impossible in the present state. */
uint64_t host_judge_wait_ns(const struct share_host *h);
/* Part a member: from now on it makes its own batches. */
void host_part(struct share_host *h, uint32_t n);

/* -- share_host_stream.c -- */

/* Begin the stream if all jobs that the host waits for have joined. */
void host_begin(struct share_host *h);
/* Take all batches that are ready from the source. */
void host_pump(struct share_host *h);

#endif
