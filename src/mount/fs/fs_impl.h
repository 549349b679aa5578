/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the FUSE front; the only header that includes libfuse.
 */
#ifndef FS_IMPL_H
#define FS_IMPL_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <fuse_log.h>

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/list.h"
#include "common/base/magic.h"
#include "mount/fs/fs.h"
#include "mount/fs/fs_session_impl.h"

#define FS_WORKERS 10u

/* The maximum length of a READ or WRITE, from which the kernel computes its
 * limit of pages; and the maximum length of any request with its header. */
#define FS_TRANSFER_MAX (1u << 20)
#define FS_REQUEST_MAX (FS_TRANSFER_MAX + 4096u)
struct asked;

/* Private to fs_gather.c. */
struct gathers {
	uint64_t max; /* set once; this and the next */
	void (*read)(const struct asked *ask, fuse_req_t req);
	/* Both are sequentially consistent: either the thread that gives room
	 * back sees that a read waits, or that read sees the room. */
	_Atomic uint64_t used;
	atomic_uint waits;    /* number of reads on `waiting` */
	pthread_mutex_t lock; /* guards all below */
	struct list waiting;  /* of struct gather_wait */
	bool beginning;	      /* a thread begins the reads that wait */
};

struct fs {
	uint32_t magic;
	struct fs_config config; /* set once; strings owned */
	struct fuse_session *se; /* set once */
	struct gathers gathers;
	pthread_key_t worker_key; /* of struct fs_worker */
	atomic_bool stateless;	  /* opens need no request; set by init */
	void (*ready)(void *arg); /* set before the workers start */
	void *ready_arg;
	atomic_uint read_ahead_kib;
	atomic_bool exiting;
	bool greeted; /* main thread only: the first request was answered */
	atomic_uint looking; /* of struct fs_poll */
	/* NULL: the kernel can send requests again. Set while the workers
	 * wait. */
	struct journal *journal;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t cond;
	unsigned running; /* workers */
	bool complete;	  /* all workers have been started */
};

struct gather;

/* The process of a thread; see fs_process_of(). */
struct fs_reader {
	pid_t thread, process;
	uint64_t until_ns; /* valid until then */
};

#define FS_READERS 64u

/* The data of a thread that answers requests. */
struct fs_worker {
	uint32_t magic;
	struct fs_reader reader[FS_READERS]; /* by thread, modulo its size */
	struct store_scratch *scratch;
	struct fs_read *spare; /* kept, so that a hit allocates nothing */
	/* Kept for the same reason, for a read over several items */
	struct gather *gather;
};

/* A request that may wait for the origin; see fs_interrupt.c. The thread that
 * claims the request answers it, once; its memory stays valid until then. */
struct parked {
	uint32_t magic;
	fuse_req_t req;
	atomic_bool answered;
	atomic_bool armed; /* an interrupt may answer it */
};

void parked_init(struct parked *p, fuse_req_t req);

/* Returns true if the caller must answer p->req, false if another thread
 * has. */
bool parked_claim(struct parked *p);

/* fs_worker.c: answer with an error (-errno) that a program gets, and count it.
 */
void fs_reply_error(fuse_req_t req, int status);

/* fs_takeover.c: continue with the session's connection: use it, repeat the
 * kernel's first request, have the kernel send again the requests that were
 * read but not answered, and unmount. */
int takeover_open(struct fs *fs, struct fuse_session *se);
void takeover_greet(struct fs *fs);
bool takeover_can_resend(const struct session *s);
int takeover_resend(struct fs *fs);
void takeover_unmount(struct fs *fs);

/*
 * fs_receive.c: receive_buffer_new() allocates a buffer with room for any
 * request, or returns NULL. receive_request() reads a request into it, and
 * returns its size; 0 after an unmount; -EINTR: try again; or another -errno.
 */
void *receive_buffer_new(void);
void receive_buffer_free(void *buffer); /* NULL is allowed */
ssize_t receive_request(struct fs *fs, void *buffer);

/*
 * fs_journal.c: the journal of requests that were read but not answered.
 * journal_new() begins one; journal_open() continues one and takes over its
 * descriptor. Both return NULL if that is not possible. journal_attach() makes
 * the session report answers to the journal; call it before there are requests.
 * journal_receive() reads a request or returns -errno. journal_replay() answers
 * requests that the previous process had read.
 */
struct journal;
struct journal *journal_new(void);
struct journal *journal_open(int fd);
void journal_free(struct journal *j); /* NULL is allowed */
int journal_fd(const struct journal *j);
int journal_attach(struct fs *fs);
ssize_t journal_receive(struct journal *j, int fd, void *buffer);
void journal_replay(struct fs *fs);
/* Note that the request was answered. */
void journal_answered(struct journal *j, uint64_t unique);

/* fs_strike.c: strikes_begin() installs the handlers that note which request
 * has caused a crash. fs_process() handles a request, unless it has caused two
 * crashes. */
void strikes_begin(struct fs *fs);
void fs_process(struct fs *fs, const struct fuse_buf *buf);

/*
 * The number of a node for the kernel. The upper half is the mount's instance,
 * so that a number from another instance never names a file of this one. The
 * root's number is fixed. fs_node() returns 0, which is no node, for a number
 * of another instance.
 */
static inline fuse_ino_t fs_ino(const struct fs_config *c, node_id id)
{
	uint64_t instance = session_instance(c->session);

	return id == NODE_ROOT ? FUSE_ROOT_ID : instance << 32 | id;
}

static inline node_id fs_node(const struct fs_config *c, fuse_ino_t ino)
{
	if (ino == FUSE_ROOT_ID)
		return NODE_ROOT;
	return ino >> 32 == session_instance(c->session) &&
			(node_id)ino != NODE_ROOT
		? (node_id)ino
		: 0;
}

/* The data of the calling thread; NULL if memory is short. */
struct fs_worker *fs_worker(struct fs *fs);
void fs_worker_free(void *worker);

extern const struct fuse_lowlevel_ops fs_ops;

/* A READ request of the kernel. */
struct asked {
	struct fs *fs;
	struct cache_item item; /* contains `off`; its cookie is the node */
	uint64_t off;		/* offset in the file */
	size_t len;
	enum plans_turn turn;	/* its turn in the plans */
	struct plans_read more; /* more about the turn */
	bool again;		/* it was repeated for a new version */
	bool has_room;		/* it has room of fs.gathers */
};

static inline node_id asked_node(const struct asked *ask)
{
	return (node_id)ask->item.cookie;
}

typedef void asked_fn(const struct asked *ask, fuse_req_t req);

/* fs_read.c: read and answer, on a thread that is not a worker. */
asked_fn fs_read_elsewhere;

/* fs_follow.c: take over a request whose version is stale. If the file has a
 * new version of the same size, read() is called with it. Returns false if the
 * request was not taken over. */
bool fs_follow(const struct asked *ask, fuse_req_t req, asked_fn *read);

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);

/* fs_poll.c: how a thread that answers requests waits. Only that thread uses
 * it.
 */
struct fs_poll {
	atomic_uint *looking; /* the threads that look for a request */
	unsigned ioctls;      /* number of ioctls in a row */
	bool off;
};

void fs_poll_init(struct fs_poll *p, atomic_uint *looking);

/* Call this before the thread waits for a request at the descriptor. It may
 * look for one for a while. Returns true if there is one. */
bool fs_poll(const struct fs_poll *p, int fd);

/* Call this for each request. */
void fs_poll_asked(struct fs_poll *p, const struct fuse_buf *request);

/* fs_worker.c: the process of a thread; 0: unknown. */
pid_t fs_process_of(struct fs_worker *w, pid_t thread);

/* fs_readdir.c */
void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);
void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);

/* fs_known.c: the time-outs, in seconds, for a missing name and for attributes.
 * fs_stat() fills in the result of stat(2) for a node, fs_entry() the node for
 * the kernel, including its time-outs. */
double fs_missing_timeout(const struct fs_config *c);
double fs_attr_timeout(const struct fs_config *c, const struct node_info *info);
void fs_stat(const struct fs_config *c, const struct node_info *info,
	struct stat *st);
void fs_entry(const struct fs_config *c, const struct node_info *info,
	struct fuse_entry_param *e);

#endif
