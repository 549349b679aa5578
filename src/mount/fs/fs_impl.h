/* SPDX-License-Identifier: MIT */
/*
 * The structs and functions of the FUSE front. No other header includes
 * libfuse.
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

/* FS_TRANSFER_MAX is the maximum length of a READ or WRITE; the kernel computes
 * the maximum number of pages in a request from it. FS_REQUEST_MAX is the
 * maximum length of any request with its header. */
#define FS_TRANSFER_MAX (1u << 20)
#define FS_REQUEST_MAX (FS_TRANSFER_MAX + 4096u)
struct asked;

/* Only fs_gather.c uses the members. */
struct gathers {
	uint64_t max; /* set once */
	/* Set once */
	void (*read)(const struct asked *ask, fuse_req_t req);
	/* `used` and `waits` are sequentially consistent: either the thread
	 * that returns memory sees that a read waits, or that read sees the
	 * memory. */
	_Atomic uint64_t used;
	atomic_uint waits;    /* number of reads in `waiting` */
	pthread_mutex_t lock; /* guards all members below */
	struct list waiting;  /* list of struct gather_wait */
	bool beginning;	      /* a thread is beginning waiting reads */
};

struct fs {
	uint32_t magic;
	struct fs_config config; /* set once; the fs owns the strings */
	struct fuse_session *se; /* set once */
	struct gathers gathers;
	/* the value of a thread is its struct fs_worker */
	pthread_key_t worker_key;
	/* the kernel opens files without a request; set by the handler of init
	 */
	atomic_bool stateless;
	void (*ready)(void *arg); /* set before the workers start */
	void *ready_arg;
	atomic_uint read_ahead_kib;
	atomic_bool exiting;
	bool greeted; /* main thread only: the first request was answered */
	/* number of threads that poll; see struct fs_poll */
	atomic_uint looking;
	atomic_bool notifies; /* the kernel can be notified */
	/* NULL: not needed, because the kernel can send requests again. Set
	 * while the workers wait. */
	struct journal *journal;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	unsigned running; /* number of workers */
	bool complete;	  /* all workers have been started */
};

struct gather;

/* The process of a thread that reads; see fs_process_of(). */
struct fs_reader {
	pid_t thread, process;
	uint64_t until_ns; /* time until which this is valid */
};

#define FS_READERS 64u

/* The data of a thread that answers requests. */
struct fs_worker {
	uint32_t magic;
	/* Indexed by the number of the reading thread, modulo FS_READERS */
	struct fs_reader reader[FS_READERS];
	struct store_scratch *scratch;
	/* Memory for the next read, so that a hit allocates nothing */
	struct fs_read *spare;
	/* Memory for the next read over several items */
	struct gather *gather;
};

/* A request that may wait for the origin; see fs_interrupt.c. Only the thread
 * that claims the request answers it. The memory of the struct must stay valid
 * until a thread has claimed it. */
struct parked {
	uint32_t magic;
	fuse_req_t req;
	atomic_bool answered;
	atomic_bool armed; /* on_interrupt() may answer the request */
};

void parked_init(struct parked *p, fuse_req_t req);

/* Claim the request. Returns true if the caller must answer p->req, false if
 * another thread has answered it. */
bool parked_claim(struct parked *p);

/* fs_worker.c: answer a request with an error (-errno), and count the error. */
void fs_reply_error(fuse_req_t req, int status);

/* fs_notify.c: from now on the kernel can be notified. */
void notifier_begin(struct fs *fs);

/* fs_takeover.c: continue with the session's connection: open it, repeat the
 * kernel's first request, have the kernel send again the requests that were
 * read but not answered, and unmount. */
int takeover_open(struct fs *fs, struct fuse_session *se);
void takeover_greet(struct fs *fs);
bool takeover_can_resend(const struct session *s);
int takeover_resend(struct fs *fs);
void takeover_unmount(struct fs *fs);

/* fs_receive.c: receive_buffer_new() allocates a buffer for a request of any
 * length, or returns NULL. receive_request() reads a request into the buffer.
 * It returns the size of the request; 0 after an unmount; -EINTR if it has to
 * be called again; or another -errno. */
void *receive_buffer_new(void);
void receive_buffer_free(void *buffer); /* NULL is allowed */
ssize_t receive_request(struct fs *fs, void *buffer);

/*
 * fs_journal.c: the journal of requests that were read but not answered.
 * journal_new() creates a journal. journal_open() opens the journal of the
 * previous process, and owns its descriptor from then on. Both return NULL on
 * failure. journal_attach() has libfuse report answers to the journal; call it
 * before there are requests. journal_receive() reads a request, or returns
 * -errno. journal_replay() answers the requests that the previous process has
 * read.
 */
struct journal;
struct journal *journal_new(void);
struct journal *journal_open(int fd);
void journal_free(struct journal *j); /* NULL is allowed */
int journal_fd(const struct journal *j);
int journal_attach(struct fs *fs);
ssize_t journal_receive(struct journal *j, int fd, void *buffer);
void journal_replay(struct fs *fs);
/* Note that a request was answered. */
void journal_answered(struct journal *j, uint64_t unique);

/* fs_strike.c: strikes_begin() installs signal handlers that note which request
 * caused a crash. fs_process() handles a request. If the request has caused two
 * crashes, fs_process() answers it with an error. */
void strikes_begin(struct fs *fs);
void fs_process(struct fs *fs, const struct fuse_buf *buf);

/* fs_ino() returns the number that a node has for the kernel. Its upper half is
 * the instance of the mount, so that a number of an earlier instance never
 * stands for a file of this one. The root has a fixed number. fs_node() returns
 * the node of a number, or 0 for a number of another instance. */
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

/* Returns the data of the calling thread; NULL: memory is short. */
struct fs_worker *fs_worker(struct fs *fs);
void fs_worker_free(void *worker);

extern const struct fuse_lowlevel_ops fs_ops;

/* A READ request of the kernel. */
struct asked {
	struct fs *fs;
	/* The item that contains `off`; its cookie is the node */
	struct cache_item item;
	uint64_t off; /* offset in the file */
	size_t len;
	enum plans_turn turn;	/* relation to the plans */
	struct plans_read more; /* more about its relation to the plans */
	bool again;		/* the request was repeated for a new version */
	bool has_room;		/* the request has got memory of fs.gathers */
};

static inline node_id asked_node(const struct asked *ask)
{
	return (node_id)ask->item.cookie;
}

typedef void asked_fn(const struct asked *ask, fuse_req_t req);

/* fs_read.c: handle a READ, on a thread that is not a worker. */
asked_fn fs_read_elsewhere;

/* fs_follow.c: handle a request for a version that the source does not have any
 * more. If the file has a new version of the same size, read() is called for
 * it; otherwise the request fails with ESTALE. Returns false if it cannot do
 * so; then the caller must answer the request. */
bool fs_follow(const struct asked *ask, fuse_req_t req, asked_fn *read);

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);

/* fs_poll.c: how a thread that answers requests waits for the next one. Only
 * that thread uses the struct. */
struct fs_poll {
	/* Number of threads that poll; shared by all threads */
	atomic_uint *looking;
	/* Number of ioctls in a row */
	unsigned ioctls;
	bool off;
};

void fs_poll_init(struct fs_poll *p, atomic_uint *looking);

/* Call this before the thread reads a request from the descriptor. It may poll
 * for a short time. Returns true if there is a request. */
bool fs_poll(const struct fs_poll *p, int fd);

/* Call this for each request that was read. */
void fs_poll_asked(struct fs_poll *p, const struct fuse_buf *request);

/* fs_worker.c: returns the process to which a thread belongs; 0: unknown. */
pid_t fs_process_of(struct fs_worker *w, pid_t thread);

/* fs_readdir.c: handlers. */
void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);
void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi);

/* fs_known.c: fs_missing_timeout() and fs_attr_timeout() return how long, in
 * seconds, the kernel may cache a missing name and attributes. fs_stat() fills
 * in the result of stat(2) for a node. fs_entry() fills in the answer to a
 * look-up, with its time-outs. */
double fs_missing_timeout(const struct fs_config *c);
double fs_attr_timeout(const struct fs_config *c, const struct node_info *info);
void fs_stat(const struct fs_config *c, const struct node_info *info,
	struct stat *st);
void fs_entry(const struct fs_config *c, const struct node_info *info,
	struct fuse_entry_param *e);

#endif
