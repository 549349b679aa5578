/* SPDX-License-Identifier: MIT */
/*
 * Shares batches: one process makes them, and others on the same machine read
 * them. The *host* of a share puts the batches into the slots of one sealed
 * memfd. It announces each batch over a socket, and reuses a slot when every
 * *member* has released it. The host alone keeps track of who holds a slot, in
 * private memory, so a process that dies leaves nothing inconsistent behind.
 * doc/formats.md has the messages.
 *
 * The host takes batches from any batch source; a link receives announcements
 * of batches. Neither depends on loaders.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"

#define SHARE_NAME_MAX 64      /* bytes of a name that a user gives */
#define SHARE_FULL_NAME_MAX 96 /* including ".RANK-WORLD" and the NUL */
#define SHARE_LABEL_MAX 32
#define SHARE_TEXT_MAX 384
#define SHARE_MEMBERS_MAX 64
#define SHARE_PRINTS_MAX 96

/* -- Messages, as they lie in a socket's buffer ---------------------------- */

enum share_type {
	SHARE_HELLO = 1, /* member: let me in */
	SHARE_WELCOME,	 /* host: you are in */
	SHARE_REFUSE,	 /* host: you are not in; or the run has failed */
	/* Host: the memory of the batches, with its descriptor */
	SHARE_SEGMENT,
	SHARE_BATCH,   /* host: a batch is ready */
	SHARE_RELEASE, /* member: it has finished with the batch */
	SHARE_WAIT,    /* member: it has no batch */
	SHARE_CHANGE,  /* host: the echo factor changes */
	SHARE_END,     /* host: the stream ends before this step */
	SHARE_ASK,     /* anyone: a question for a view */
	/* Host: the jobs and the state; also sent after each change of
	 * members */
	SHARE_VIEW,
	/* Host: make your own batches from now on. Member: this job does so,
	 * and the step is its next one. */
	SHARE_ALONE,
	SHARE_TAKE, /* member: it is about to use the batch */
	SHARE_TYPES,
};

/* The step that a member wants to begin with. */
enum share_wish {
	SHARE_WISH_NEW = 1, /* step 0, or the next epoch if that is over */
	SHARE_WISH_STEP,    /* this step, of a saved state */
	SHARE_WISH_AGAIN,   /* this step: it was a member before */
	/* This step, when the others have reached it: the job was a member
	 * before, and makes its own batches now. */
	SHARE_WISH_ALONE,
};

struct share_change {
	uint64_t step;
	uint32_t p, q;
};

struct share_hello {
	uint64_t id; /* of the member, the same in all its links */
	uint64_t step;
	uint64_t dataset;  /* fingerprint */
	uint32_t wish;	   /* enum share_wish */
	uint32_t batch;	   /* the member's own, for the view */
	uint32_t jobs;	   /* begin when this many jobs have joined */
	uint32_t prints_n; /* hashes of what must be equal */
	uint32_t prints[SHARE_PRINTS_MAX];
	char name[SHARE_FULL_NAME_MAX];
	char label[SHARE_LABEL_MAX];
	/* Number of changes of the echo factor that it knows */
	uint32_t changes;
	/*
	 * 0: the others wait for this member as long as necessary. Otherwise it
	 * is parted if it makes them wait, but it may pause for up to this time
	 * at the end of an epoch.
	 */
	uint32_t grace_s;
	struct share_change change; /* the last change that it knows */
};

struct share_welcome {
	uint64_t step;	     /* the first step that will be announced */
	uint64_t generation; /* hosts that this share has had before */
	uint32_t begun;
	uint32_t place;	  /* index of the member in share_words.parted */
	uint32_t changes; /* changes of the echo factor, which are sent first */
	uint32_t reserved;
};

struct share_refuse {
	int32_t error; /* -errno */
	uint32_t reserved;
	char text[SHARE_TEXT_MAX];
};

struct share_segment {
	uint64_t bytes, slot_bytes;
	uint32_t slots, reserved;
};

struct share_batch {
	uint64_t step, epoch, ended_epoch;
	uint32_t slot, count, fresh, ends_epoch;
	uint32_t substituted, reserved;
};

struct share_step {
	uint64_t step;
};

struct share_job {
	uint64_t id, born; /* born: see proc_born() */
	uint64_t next;	   /* the next step to announce to it */
	uint64_t oldest;   /* the first step that it holds; UINT64_MAX: none */
	uint32_t pid, held;
	uint32_t waiting, batch;
	uint32_t solo;	  /* it makes its own batches */
	uint32_t grace_s; /* as in HELLO */
	char label[SHARE_LABEL_MAX];
};

struct share_view {
	uint64_t step; /* the next step that the host will have */
	uint64_t generation;
	uint64_t malformed; /* malformed messages */
	uint32_t host_pid, begun;
	uint32_t wanted; /* the number of jobs with which it begins */
	uint32_t slots, slots_held;
	uint32_t batch;
	uint32_t missing; /* jobs of the previous host that are not back yet */
	uint32_t jobs_n;
	char name[SHARE_FULL_NAME_MAX];
	char text[SHARE_TEXT_MAX]; /* what the host waits for, or "" */
	struct share_job jobs[SHARE_MEMBERS_MAX];
};

/* The job for which the others wait: all slots are held, and this job holds the
 * oldest one without waiting itself. NULL: none. */
const struct share_job *share_view_slowest(const struct share_view *view);

/* A checked message. */
struct share_msg {
	enum share_type type;
	union {
		struct share_hello hello;
		struct share_welcome welcome;
		struct share_refuse refuse;
		struct share_segment segment;
		struct share_batch batch;
		struct share_step step; /* RELEASE, WAIT, END, ALONE, TAKE */
		struct share_change change;
		struct share_view view;
	};
};

/* -- Names and places ------------------------------------------------------ */

struct share_place;

/* Check the name of a share. -EINVAL with the reason. */
int share_name_check(const char *name, struct error *err);

/*
 * Get the place of a share of this user, by its full name. Creates no file of
 * the share. All callers in a process get the same object. Returns -EPERM,
 * -ENAMETOOLONG, or another -errno.
 */
int share_place_get(
	struct share_place **out, const char *name, struct error *err);
void share_place_put(struct share_place *place);
const char *share_place_name(const struct share_place *place);

/* Call each() with the name of every share that has a host, or whose host was
 * killed. Stops when each() does not return 0. */
int share_place_list(
	int (*each)(void *arg, const char *name), void *arg, struct error *err);

/* -- The memory of a share ------------------------------------------------- */

#define SHARE_AREA_MAGIC 0x52415348u

/*
 * Words that the host writes, on a page of their own after the batches. A
 * member that the host has parted may use only batches that it took before. To
 * take a batch, a member sends TAKE, then reads its word here. To part a
 * member, the host writes the word, then reads the member's messages. So either
 * the member sees the word, or the host sees the TAKE.
 */
struct share_words {
	uint32_t magic; /* SHARE_AREA_MAGIC; members accept no other memory */
	_Atomic uint32_t parted[SHARE_MEMBERS_MAX];
};

/* All private. */
struct share_area {
	void *base;
	size_t bytes; /* for batches */
	struct share_words *words;
	int fd; /* the host's; -1 for a member */
};

/* Create the memory for the host: writable. Returns 0 or -errno. */
int share_area_new(struct share_area *area, size_t bytes);
/*
 * Map the memory for a member: read-only. Returns -EBADMSG if the file is
 * smaller than `bytes`, could shrink, or could be written through another
 * mapping.
 */
int share_area_map(struct share_area *area, int fd, size_t bytes);
void share_area_release(struct share_area *area);
/* Where the batches are. */
char *share_area_base(const struct share_area *area);
/* The word of a member: written by the host, read by the member. */
void share_area_set_parted(
	const struct share_area *area, uint32_t member, bool parted);
bool share_area_is_parted(const struct share_area *area, uint32_t member);

/* -- The host -------------------------------------------------------------- */

struct share_host;

/* A batch source that was just opened. */
struct share_stream {
	struct batch_source *source; /* the host closes it */
	struct share_area area;	     /* the host releases it after that */
	uint32_t slots;
	size_t slot_bytes;
};

/* What a host asks its maker. The host's thread calls these functions. */
struct share_host_ops {
	/* May this job join? 0, or -errno with a message for it. */
	int (*check)(
		void *arg, const struct share_hello *hello, struct error *err);
	/* Begin the stream at this step. */
	int (*begin)(void *arg, uint64_t step, struct share_stream *out,
		struct error *err);
	/* The first step of the next epoch that begins at or after `step`;
	 * UINT64_MAX if there is none. */
	uint64_t (*epoch_from)(void *arg, uint64_t step);
	/*
	 * Get the next batch without waiting; otherwise like next() of the
	 * source. A member has waited for it since `since_ns` (0: none has). If
	 * this is NULL, next() of the source is called.
	 */
	int (*next)(void *arg, struct lent_batch **out, uint64_t since_ns);
	/* Get the n-th change of the echo factor in the run. Returns 1, 0 if
	 * there is none, or -ESTALE if it is older than all known changes. If
	 * this is NULL, the factor never changes. */
	int (*change)(void *arg, uint32_t n, struct share_change *out);
	/* Called before the source is closed. May be NULL. */
	void (*ending)(void *arg);
	void *arg;
};

struct share_host_config {
	struct share_place *place;
	struct share_host_ops ops;
	uint32_t batch;	     /* for the view */
	uint32_t jobs;	     /* begin only when this many jobs have joined */
	bool on_demand;	     /* take a batch only when a member waits for one */
	bool until_empty;    /* end when the last member has gone */
	uint64_t generation; /* number of hosts before this one */
	bool begun;	     /* the previous host had begun its stream */
	/* The members of the previous host, or NULL. The new host waits for
	 * those that are alive. */
	const struct share_view *before;
	/* The id of the job of the host's own process, for which the host waits
	 * in any case; 0: there is none. */
	uint64_t own;
};

/* Become the host, and start its thread. Returns -EAGAIN if there is another
 * host. The place must outlive the host. */
int share_host_start(struct share_host **out,
	const struct share_host_config *config, struct error *err);
/* End the host: members see that it is gone. Call share_host_stop() afterwards.
 * Returns false if it hangs. */
bool share_host_end(struct share_host *host);
/* End and free the host: members see that it is gone. Returns the result of
 * closing the source, or 1 if the host hangs and is left behind. */
int share_host_stop(struct share_host *host);
/* A descriptor that polls readable when the host has ended by itself
 * (until_empty, or a failure). The host owns it. */
int share_host_done_fd(const struct share_host *host);
/* Returns the error with which the host ended, or 0. */
int share_host_failed(struct share_host *host, struct error *err);

/* -- A member -------------------------------------------------------------- */

/* One thread at a time. */
struct share_link {
	int fd;	   /* the socket, non-blocking */
	int pidfd; /* of the host, or -1 */
	pid_t host_pid;
};

/* Connect to the host. Returns -ENOENT or -ECONNREFUSED if there is none,
 * -EPERM if another user hosts the share. */
int share_link_open(
	struct share_link *link, struct share_place *place, struct error *err);
void share_link_close(struct share_link *link);
/* Send one message. Returns 0, -EPIPE if the host is gone, or -EAGAIN if the
 * host does not read its messages; then this one is lost. */
int share_link_send(struct share_link *link, const struct share_msg *msg);
/*
 * Receive one message; waits for at most timeout_ms. Returns 1, 0 if there is
 * none, -EPIPE at the end, or -EBADMSG. *fd is the descriptor that came with
 * the message, or -1.
 */
int share_link_recv(struct share_link *link, struct share_msg *msg, int *fd,
	int timeout_ms);
/*
 * Send HELLO and wait for the answer. Returns 0, -EAGAIN if none has come in
 * time, or the error of a refusal, which is also -EAGAIN if another attempt may
 * succeed.
 */
int share_link_join(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err);
/* Wait again for the answer to HELLO. */
int share_link_await(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err);

/* -- Parsing, for tests -----------------------------------------------------
 */

/* Returns 0, -EBADMSG, or -EPROTONOSUPPORT for another version. */
int share_msg_parse(const void *data, size_t bytes, struct share_msg *out);
/* Returns the size. */
size_t share_msg_print(const struct share_msg *msg, void *out, size_t room);

#endif
