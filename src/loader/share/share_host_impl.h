/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the host. Everything belongs to the host's thread,
 * except members that are set once or guarded by the lock. The states, and the
 * calls that change them:
 *
 *	the host
 *	  GATHERS -> RUNS       host_begin(): all expected jobs have joined
 *	  GATHERS -> OVER       host_begin(): there is no stream
 *	  RUNS -> OVER          host_pump(): the last batch, or a failure
 *	a connection
 *	  FREE -> NEW           host_accept()
 *	  NEW -> FOLLOWS        host_member_join()
 *	  NEW -> ALONE          host_member_join(): it makes its own batches
 *	  NEW -> PARTING        host_member_join(): its step is too far ahead
 *	  FOLLOWS -> PARTING    host_part()
 *	  PARTING -> ALONE      host_member_tell_alone(): it was told
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

/* Arguments: the share's name and step, the job's step, the number of slots. */
#define HOST_AHEAD                                                             \
	"share '%s' is at step %llu, and this job's state is at step %llu, "   \
	"more than its %u batches ahead; restore a state of the same step "    \
	"as the others, set share_slow to solo, or choose another name"

enum member_state {
	MEMBER_FREE,
	MEMBER_NEW,
	MEMBER_FOLLOWS,
	/* Makes its own batches, but has not been told so yet */
	MEMBER_PARTING,
	MEMBER_ALONE,
};

/* A connection. It is a member once it has joined. */
struct host_member {
	enum member_state state;
	int fd; /* -1: free */
	int pidfd;
	pid_t pid;
	uint64_t born;
	uint64_t id;
	char label[SHARE_LABEL_MAX];
	uint32_t batch;	  /* examples in its own batches */
	uint32_t wish;	  /* enum share_wish */
	uint64_t next;	  /* the next step to announce to it */
	uint32_t changes; /* number of changes that it was told */
	/* The last message about the stream that it got. TOLD_END is the final
	 * state. */
	enum { TOLD_NOTHING, TOLD_SEGMENT, TOLD_END } told;
	/* A view must be sent to it when its socket has room. */
	bool view_due;
	bool armed; /* the loop reports when the socket has room */
	/* When it began to wait for a batch; 0: it does not wait. */
	uint64_t waiting_ns;
	/* See share_host_solo.c. */
	uint32_t grace_s; /* as in HELLO; 0: it is never parted */
	bool released;	  /* it has released a batch, at any time */
	uint64_t slow_ns; /* the time that others have recently waited for it */
	uint64_t paused_ns; /* the same in its pause at the end of an epoch */
};

/* A job of the previous host, which may come back. */
struct expected {
	uint64_t id;
	int pidfd; /* -1: the host does not wait for it any more */
	pid_t pid;
	bool solo; /* it is parted if it is slow */
};

/* The slot of one batch that the host's engine has lent. */
struct host_slot {
	struct lent_batch *lent; /* NULL: free */
	uint64_t refs;		 /* members that have not released it */
	/* Members that use it; see struct share_words */
	uint64_t taken;
	bool begins_epoch; /* the previous batch ended an epoch */
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
	uint32_t joined; /* members now */
	uint32_t solos;	 /* joined members that are parted if they are slow */
	uint64_t came;	 /* number of members that ever joined */
	uint64_t own;	 /* the id of this process's job, until it joins */
	enum { HOST_GATHERS, HOST_RUNS, HOST_OVER } state;
	/* Tasks that are due after an event, in any state. */
	bool accept_due; /* there is a new connection */
	/* When it listens again, after a lack of descriptors; 0: it listens */
	uint64_t accept_ns;
	/* a member has left, for which others may have waited */
	bool tell_due;
	bool stream_armed; /* the loop reports when the source is ready */
	struct share_stream stream;
	struct host_slot *slots; /* of the stream */
	uint32_t held;		 /* slots that are not free */
	uint64_t first;		 /* the first step */
	uint64_t end;		 /* the step after the newest batch */
	uint32_t changes;	 /* of the echo factor, so far */
	uint64_t malformed;
	bool ended_epoch;   /* the newest batch ended an epoch */
	uint64_t judged_ns; /* when host_judge() last looked */
	uint64_t blamed;    /* members that others have waited for since then */
	uint64_t free_ns;   /* time in which no member was blamed */
	int failure;
	struct error why; /* of the failure */
	int closed;	  /* what closing the source returned */

	pthread_mutex_t lock;
	int ended;	   /* lock: the failure, for other threads */
	struct error said; /* lock */
};

static inline bool member_has_joined(const struct host_member *m)
{
	return m->state >= MEMBER_FOLLOWS;
}

/* Does it make its own batches? */
static inline bool member_is_alone(const struct host_member *m)
{
	return m->state >= MEMBER_PARTING;
}

/* Is there a stream, or was there one? */
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

/* The kinds of events. */
enum host_event {
	EVENT_LISTEN,
	EVENT_STREAM,
	EVENT_SOCKET,  /* + number of the member */
	EVENT_PROCESS, /* + number of the member */
	EVENT_EXPECTED /* + index in `expected` */
};

/* -- share_host_slots.c -- */

/* Report these events of the descriptor. On -errno it is watched as before. */
int host_watch(struct share_host *h, int fd, uint32_t events,
	enum host_event what, uint32_t number);
/* End the run with a failure. */
void host_fail(struct share_host *h, int error, const struct error *why);
void host_free_slot(struct share_host *h, struct host_slot *s);
/* Drop the batches that the member holds. If `taken` is false, batches that it
 * has taken stay. */
void host_drop(struct share_host *h, uint32_t member, bool taken);
/* The slot that has the step, or NULL. */
struct host_slot *host_slot_of(struct share_host *h, uint64_t step);
/* The oldest step such that it and all later steps are in slots; `end` if there
 * is none. */
uint64_t host_oldest(struct share_host *h);
/* Is it a member that gets batches? */
bool host_follows(const struct share_host *h, uint32_t member);
/* The bits of the members that need this step. */
uint64_t host_wanted_by(const struct share_host *h, uint64_t step);
/* Set the member's bit in the slots from its next step on. */
void host_member_ref(struct share_host *h, uint32_t n);
/* The time since which a member has waited; 0 if none waits. */
uint64_t host_demand_ns(const struct share_host *h);

/* -- share_host_tell.c -- */

/* Send the member the messages that are due. */
void host_member_flush(struct share_host *h, uint32_t n);
/* Send each member the messages that are due. */
void host_tell_all(struct share_host *h);
void host_member_view(struct share_host *h, uint32_t n);
void host_tell_view(struct share_host *h);
void host_refuse(int fd, int error, const char *text);
/* The number of jobs of the previous host that are still expected. */
uint32_t host_missing(const struct share_host *h);

/* -- share_host_members.c -- */

void host_accept(struct share_host *h);
/* Read and handle the messages of a member. */
void host_member_read(struct share_host *h, uint32_t n);
void host_member_leave(struct share_host *h, uint32_t n);
void expected_drop(struct share_host *h, uint32_t n);
/* Close and forget a descriptor of a member; -1: there is none. This also
 * removes it from the loop, because closing does not end its events if a forked
 * child has a copy. */
void host_close_fd(struct share_host *h, int *fd);

/* -- share_host_solo.c -- */

/* Part the members for which others have waited too long; this may free slots.
 * Call it after each event. Returns true if it parted one. */
bool host_judge(struct share_host *h);
/* The time until a member may have to be parted; LOOP_NEVER if that is
 * impossible in the present state. */
uint64_t host_judge_wait_ns(const struct share_host *h);
/* Part a member: it continues alone. */
void host_part(struct share_host *h, uint32_t n);

/* -- share_host_stream.c -- */

/* Begin the stream if all expected jobs have joined. */
void host_begin(struct share_host *h);
/* Take the batches that are ready. */
void host_pump(struct share_host *h);

#endif
