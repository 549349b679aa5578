/* SPDX-License-Identifier: MIT */
/*
 * Shares batches: one process makes batches, and others on the same machine
 * read them. The *host* of a share writes each batch into a slot of one sealed
 * memfd and announces it over a socket. It reuses a slot when every *member*
 * has released its batch. Only the host records which members hold a slot, in
 * its private memory, so a process that dies leaves nothing inconsistent
 * behind. doc/formats.md describes the messages.
 *
 * The host takes its batches from any batch source, and a link receives
 * announcements of batches. Neither the host nor the link depends on loaders.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"

#define SHARE_NAME_MAX 64      /* maximum length of a user's name for a share */
#define SHARE_FULL_NAME_MAX 96 /* including ".RANK-WORLD" and the NUL */
#define SHARE_LABEL_MAX 32
#define SHARE_TEXT_MAX 384
#define SHARE_MEMBERS_MAX 64
#define SHARE_PRINTS_MAX 96

/* -- Messages, as they are in a buffer of a socket ------------------------- */

enum share_type {
	SHARE_HELLO = 1, /* the member asks to join */
	SHARE_WELCOME,	 /* the host says that the member has joined */
	/* the host says that the job may not join, or that the run failed */
	SHARE_REFUSE,
	/* The host sends the memory of the batches, with the descriptor of its
	 * memfd */
	SHARE_SEGMENT,
	SHARE_BATCH,   /* the host says that a batch is ready */
	SHARE_RELEASE, /* the member has finished using the batch */
	SHARE_WAIT,    /* the member waits for the next batch */
	SHARE_CHANGE, /* the host says that the echo factor changes at a step */
	SHARE_END,    /* the host says that the stream ends before this step */
	/* Any process asks for a view */
	SHARE_ASK,
	/* The host sends the jobs of the share and its state; also whenever a
	 * member joins or leaves */
	SHARE_VIEW,
	/* From the host: the member must make its own batches from now on. From
	 * a member: it makes its own batches, and the step is its next one. */
	SHARE_ALONE,
	SHARE_TAKE, /* the member is going to use the batch */
	SHARE_TYPES,
};

/* How a member wants to join. */
enum share_wish {
	/* Join at step 0 or, if that step is over, at the beginning of the next
	 * epoch */
	SHARE_WISH_NEW = 1,
	/* join at this step, which is that of the job's saved state */
	SHARE_WISH_STEP,
	/* join at this step; the job was a member of an earlier host */
	SHARE_WISH_AGAIN,
	/* Join at this step, as soon as the share has reached it. The job was a
	 * member of an earlier host, and makes its own batches now. */
	SHARE_WISH_ALONE,
};

struct share_change {
	uint64_t step;
	uint32_t p, q;
};

struct share_hello {
	uint64_t id; /* the member's id, the same in all its links */
	uint64_t step;
	uint64_t dataset;  /* fingerprint of the dataset */
	uint32_t wish;	   /* enum share_wish */
	uint32_t batch;	   /* the member's batch size, for the view */
	uint32_t jobs;	   /* number of jobs with which the stream begins */
	uint32_t prints_n; /* number of hashes of options that must be equal */
	uint32_t prints[SHARE_PRINTS_MAX];
	char name[SHARE_FULL_NAME_MAX];
	char label[SHARE_LABEL_MAX];
	/* Number of changes of the echo factor that the member knows */
	uint32_t changes;
	/*
	 * 0: the others wait for this member as long as necessary. Otherwise
	 * the host parts the member if it makes the others wait, but the member
	 * may pause for up to this time, in seconds, at the end of an epoch.
	 */
	uint32_t grace_s;
	struct share_change change; /* the last change that the member knows */
};

struct share_welcome {
	uint64_t step;	     /* the first step that will be announced */
	uint64_t generation; /* number of hosts that this share had before */
	uint32_t begun;
	uint32_t place; /* the member's index in share_words.parted */
	/* Number of changes of the echo factor; the host sends them first */
	uint32_t changes;
	uint32_t reserved;
};

struct share_refuse {
	int32_t error; /* negative errno value */
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
	/* `born` is the start time of the process; see proc_born() */
	uint64_t id, born;
	uint64_t next; /* the next step to announce to the job */
	/* The step of the oldest batch that the job holds; UINT64_MAX: none */
	uint64_t oldest;
	uint32_t pid, held;
	uint32_t waiting, batch;
	uint32_t solo;	  /* the job makes its own batches */
	uint32_t grace_s; /* as in struct share_hello */
	char label[SHARE_LABEL_MAX];
};

struct share_view {
	uint64_t step; /* the step after the newest batch */
	uint64_t generation;
	uint64_t malformed; /* number of malformed messages so far */
	uint32_t host_pid, begun;
	uint32_t wanted; /* number of jobs with which the stream begins */
	uint32_t slots, slots_held;
	uint32_t batch;
	/* Number of jobs of the previous host that have not joined again yet */
	uint32_t missing;
	uint32_t jobs_n;
	char name[SHARE_FULL_NAME_MAX];
	char text[SHARE_TEXT_MAX]; /* what the host waits for, or "" */
	struct share_job jobs[SHARE_MEMBERS_MAX];
};

/* Returns the job for which the others wait, or NULL: all slots are held, and
 * this job holds the oldest batch but does not wait for a batch itself. */
const struct share_job *share_view_slowest(const struct share_view *view);

/* A message whose contents were checked. */
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

/* Check the name of a share. Returns 0, or -EINVAL with the reason in err. */
int share_name_check(const char *name, struct error *err);

/*
 * Get the place of one of this user's shares by its full name. This does not
 * create a file of the share. All callers in a process get the same object.
 * Returns 0, -EPERM, -ENAMETOOLONG, or another -errno.
 */
int share_place_get(
	struct share_place **out, const char *name, struct error *err);
void share_place_put(struct share_place *place);
const char *share_place_name(const struct share_place *place);

/* Call each() with the name of every share that has a host, or had one that was
 * killed. Stops when each() returns anything but 0, and returns that value. */
int share_place_list(
	int (*each)(void *arg, const char *name), void *arg, struct error *err);

/* -- The memory of a share ------------------------------------------------- */

#define SHARE_AREA_MAGIC 0x52415348u

/*
 * Words that the host writes, on a page of their own after the batches. A
 * member that the host has parted may use only batches that it had taken
 * before. To take a batch, a member sends TAKE and then reads its word here. To
 * part a member, the host writes the member's word and then reads the member's
 * messages. So either the member sees the new word, or the host sees the TAKE.
 */
struct share_words {
	uint32_t magic; /* SHARE_AREA_MAGIC; members check it */
	_Atomic uint32_t parted[SHARE_MEMBERS_MAX];
};

/* All members are private. */
struct share_area {
	void *base;
	size_t bytes; /* size of the part with the batches */
	struct share_words *words;
	int fd; /* the host's memfd; -1 in a member */
};

/* Create the memory, and map it writable for the host. Returns 0 or -errno. */
int share_area_new(struct share_area *area, size_t bytes);
/*
 * Map the memory read-only for a member. Returns 0, -errno, or -EBADMSG if the
 * file is smaller than `bytes`, could shrink, or could be written through
 * another mapping.
 */
int share_area_map(struct share_area *area, int fd, size_t bytes);
void share_area_release(struct share_area *area);
/* Returns the address of the batches. */
char *share_area_base(const struct share_area *area);
/* Write or read the word of a member. Only the host writes it, and only the
 * member reads it. */
void share_area_set_parted(
	const struct share_area *area, uint32_t member, bool parted);
bool share_area_is_parted(const struct share_area *area, uint32_t member);

/* -- The host -------------------------------------------------------------- */

struct share_host;

/* A batch source that was just opened, and its memory. */
struct share_stream {
	struct batch_source *source; /* the host closes it */
	struct share_area area;	     /* the host releases it after the source */
	uint32_t slots;
	size_t slot_bytes;
};

/* Functions that a host needs from the code that starts it. The host's thread
 * calls them. */
struct share_host_ops {
	/* May this job join? Returns 0, or -errno with a message for the
	 * job. */
	int (*check)(
		void *arg, const struct share_hello *hello, struct error *err);
	/* Open a source for the stream, beginning at this step. */
	int (*begin)(void *arg, uint64_t step, struct share_stream *out,
		struct error *err);
	/* Returns the first step of the next epoch that begins at or after
	 * `step`, or UINT64_MAX if there is no such epoch. */
	uint64_t (*epoch_from)(void *arg, uint64_t step);
	/*
	 * Get the next batch without waiting; the result is that of next() of
	 * the source. A member has waited for this batch since `since_ns` (0:
	 * no member waits). If this function is NULL, next() of the source is
	 * called.
	 */
	int (*next)(void *arg, struct lent_batch **out, uint64_t since_ns);
	/* Get the n-th change of the echo factor in the run. Returns 1, 0 if
	 * there were not so many changes, or -ESTALE if the n-th change is
	 * older than all known ones. If this function is NULL, the factor never
	 * changes. */
	int (*change)(void *arg, uint32_t n, struct share_change *out);
	/* Called before the source is closed. May be NULL. */
	void (*ending)(void *arg);
	void *arg;
};

struct share_host_config {
	struct share_place *place;
	struct share_host_ops ops;
	uint32_t batch;	     /* examples in a batch, for the view */
	uint32_t jobs;	     /* number of jobs with which the stream begins */
	bool on_demand;	     /* take a batch only if a member waits for it */
	bool until_empty;    /* end when the last member has left */
	uint64_t generation; /* number of hosts that this share had before */
	bool begun;	     /* the previous host had begun its stream */
	/* The last view of the previous host, or NULL. The new host waits for
	 * those of its members that are alive. */
	const struct share_view *before;
	/* The id of the job in the host's own process, for which the host
	 * always waits before it begins; 0: there is no such job. */
	uint64_t own;
};

/* Become the host of the place, and start a thread for it. Returns 0, -EAGAIN
 * if there is another host, or another -errno. The place must outlive the host.
 */
int share_host_start(struct share_host **out,
	const struct share_host_config *config, struct error *err);
/* End the host; its members see that it is gone. Afterwards call
 * share_host_stop(). Returns false if a thread of the host hangs. */
bool share_host_end(struct share_host *host);
/* End and free the host; its members see that it is gone. Returns the result of
 * closing the source, or 1 if a thread hangs, so that the host is left
 * behind. */
int share_host_stop(struct share_host *host);
/* Returns a descriptor that polls readable when the host has ended by itself,
 * because it is empty (see until_empty) or has failed. The host owns the
 * descriptor. */
int share_host_done_fd(const struct share_host *host);
/* Returns the error that ended the host, or 0. */
int share_host_failed(struct share_host *host, struct error *err);

/* -- A member -------------------------------------------------------------- */

/* A member's connection to the host. One thread at a time may use it. */
struct share_link {
	int fd;	   /* the socket, non-blocking */
	int pidfd; /* pidfd of the host's process, or -1 */
	pid_t host_pid;
};

/* Connect to the host. Returns 0, -ENOENT or -ECONNREFUSED if there is no host,
 * -EPERM if another user hosts the share, or another -errno. */
int share_link_open(
	struct share_link *link, struct share_place *place, struct error *err);
void share_link_close(struct share_link *link);
/* Send one message. Returns 0, -EPIPE if the host is gone, or -EAGAIN if the
 * host does not read its messages. In the latter case this message is lost. */
int share_link_send(struct share_link *link, const struct share_msg *msg);
/*
 * Receive one message, and wait for it for at most timeout_ms milliseconds.
 * Returns 1, 0 if no message has come, -EPIPE at the end, or -EBADMSG. *fd is
 * set to the descriptor that came with the message, or to -1.
 */
int share_link_recv(struct share_link *link, struct share_msg *msg, int *fd,
	int timeout_ms);
/* Send HELLO and wait for the answer. Returns 0; -EAGAIN if no answer has come
 * in time; or the error with which the host refuses, which is also -EAGAIN if
 * another attempt may succeed. */
int share_link_join(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err);
/* Wait once more for the answer to HELLO. Returns like share_link_join(). */
int share_link_await(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err);

/* -- Messages from and to bytes; public for tests -------------------------- */

/* Parse and check a message. Returns 0, -EBADMSG, or -EPROTONOSUPPORT for
 * another version. */
int share_msg_parse(const void *data, size_t bytes, struct share_msg *out);
/* Write a message to `out`. Returns its size in bytes. */
size_t share_msg_print(const struct share_msg *msg, void *out, size_t room);

#endif
